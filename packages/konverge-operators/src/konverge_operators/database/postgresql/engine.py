"""PostgreSQL as an engine of the Database operator.

Patroni's store is the only way in: a switchover and a change of settings are written there, and all members follow.
What needs a member itself (a restart, a rebuild, a login) is a command in its container, so that the superuser never
connects over the network.
"""

from __future__ import annotations

import json
import re
import secrets as randomness
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from konverge import NotFound
from konverge.client import ExecResult
from konverge.errors import ApiError, DecodeError, TransportError
from konverge.k8s.core.v1 import ConfigMap, Pod
from konverge_operators.database.api import Database
from konverge_operators.database.certificate_files import NOT_YET, reload_script, tls_volumes
from konverge_operators.database.engine import (
    ArchiveState,
    EngineError,
    Login,
    Major,
    MemberTemplate,
    ObservedMembers,
    Permission,
    SecretNames,
    Target,
)
from konverge_operators.database.names import certificate_secret, selector_of
from konverge_operators.database.postgresql.archives import (
    ARCHIVER,
    archive_parameters,
    backup_container,
    deletion_container,
    parse_state,
    recovery_container,
)
from konverge_operators.database.postgresql.configuration import (
    CONFIGURATION_FILE,
    DIRECTORY,
    OWNED_PARAMETERS,
    REPLICATION,
    REWIND,
    ROLE_LABEL,
    ROLES_FILE,
    SUPERUSER,
    Configuration,
)
from konverge_operators.database.postgresql.logins import alternate_of, create_login, invalidate_login
from konverge_operators.database.postgresql.members import (
    DATA,
    PATRONI_PORT,
    POSTGRES_PORT,
    PSQL,
    RELOAD,
    container,
)
from konverge_operators.database.postgresql.permissions import CONFIG_MAPS, rules
from konverge_operators.database.postgresql.states import Store, member_state, observed_members
from konverge_operators.database.postgresql.upgrades import deletion_script, system_identifier, upgrade_container
from konverge_operators.database.postgresql.versions import MAJORS, image
from konverge_operators.manifests import Json, child

__all__ = ["PostgreSQL"]

_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")
"""One of the server, or of an extension: with a point."""


class PostgreSQL:
    """PostgreSQL with Patroni."""

    name = "postgresql"
    majors: Sequence[Major] = MAJORS
    operator_permissions: Sequence[Permission] = (
        (ConfigMap, ("get", "list", "watch", "create", "patch", "delete"), ""),
        (Pod, ("list", "watch", "patch"), ""),
        (Pod, ("create", "get"), "exec"),
    )

    # Pure

    def find_violation(self, database: Database) -> str:
        spec = database.spec
        found = [_parameter_violation(*one) for one in sorted(spec.parameters.items())]
        if spec.owner in (SUPERUSER, REPLICATION, REWIND) or spec.owner.startswith("pg_"):
            found.append(f"owner: {spec.owner} is a role of the engine")
        if spec.database in ("postgres", "template0", "template1"):
            found.append(f"database: {spec.database} belongs to the engine")
        return "; ".join(one for one in found if one)

    def render(self, database: Database, version: str, secrets: SecretNames) -> MemberTemplate:
        configuration = _configuration(database, version.partition(".")[0])
        return MemberTemplate(
            container=container(version, secrets, tls=database.spec.tls.enabled),
            port=POSTGRES_PORT,
            config={CONFIGURATION_FILE: configuration.file(), ROLES_FILE: configuration.roles()},
            config_path=DIRECTORY,
            data_path=DATA,
            member_ports=(PATRONI_PORT,),
            metrics_port="patroni",
            volumes=tls_volumes(certificate_secret(database), tls=database.spec.tls.enabled),
            role_rules=rules(database.name),
            primary_labels={ROLE_LABEL: "primary"},
            replica_labels={ROLE_LABEL: "replica"},
        )

    def usernames(self, database: Database) -> Mapping[str, str]:
        owner = database.spec.owner
        return {
            "superuser": SUPERUSER,
            "replication": REPLICATION,
            "application": owner,
            "alternate": alternate_of(owner),
        }

    def connection(self, database: Database, host: str, login: Login) -> dict[str, str]:
        mode = {"sslmode": "require"} if database.spec.tls.enabled else {}
        query = "".join(f"?{key}={value}" for key, value in mode.items())
        user, password, name = (quote(one, safe="") for one in (login.username, login.password, database.spec.database))
        return {
            "type": "postgresql",
            "host": host,
            "port": str(POSTGRES_PORT),
            "username": login.username,
            "password": login.password,
            "database": database.spec.database,
            "uri": f"postgresql://{user}:{password}@{host}:{POSTGRES_PORT}/{name}{query}",
            **mode,
        }

    def render_upgrade(self, database: Database, major: str, version: str) -> Json:
        settings = _configuration(database, major).settings(parameters=database.spec.parameters)
        return upgrade_container(major, version, settings["postgresql"]["parameters"])

    def member_changed(self, before: Pod, after: Pod) -> bool:
        return member_state(before) != member_state(after)

    # Backups

    def render_backup(self, database: Database, version: str, secrets: SecretNames) -> Json:
        return backup_container(image(version), database, secrets)

    def render_deletion(self, version: str) -> Json:
        return deletion_container(image(version))

    def render_recovery(self, database: Database, version: str, secrets: SecretNames) -> Json:
        return recovery_container(
            image(version), database, version, secrets, _settings(database, version.partition(".")[0])
        )

    async def observe_archive(self, target: Target) -> ArchiveState:
        return parse_state(await _run_sql(target, ARCHIVER, "--tuples-only --no-align"))

    # Members

    async def observe(self, target: Target) -> ObservedMembers:
        store = await _store(target)
        return observed_members(target.pods, store, _settings(target.database, _major(target, store)))

    async def configure(self, target: Target) -> None:
        store = await _store(target)
        settings = _settings(target.database, _major(target, store))
        if store.settings is not None and store.settings != settings:
            await _annotate(target, "config", {"config": json.dumps(settings)})

    async def switchover(self, target: Target, to: str) -> None:
        store = await _store(target)
        if store.leader in ("", to) or store.switchover_pending:
            return
        # In synchronous mode Patroni refuses other candidates; without one it chooses.
        candidate = to if not store.synchronous or to in store.synchronous else None
        request = {"leader": store.leader, "member": candidate}
        try:
            await _annotate(target, "failover", request)
        except NotFound:
            await target.client.create(_config_map(target, "failover", request))

    async def restart(self, target: Target, member: str) -> None:
        await _execute(target, member, _patronictl("restart", target.name, member))

    async def rebuild(self, target: Target, member: str) -> None:
        await _execute(target, member, _patronictl("reinit", target.name, member))

    async def set_login(self, target: Target, login: Login) -> None:
        await _run_sql(target, create_login(login, target.database.spec.owner, randomness.token_bytes(16)))

    async def delete_login(self, target: Target, username: str) -> None:
        await _run_sql(target, invalidate_login(username))

    async def reload_certificate(self, target: Target, member: str, digest: str) -> bool:
        command = ["sh", "-c", reload_script(digest, RELOAD)]
        return (await _execute(target, member, command, allowed=(0, NOT_YET))).exit_code == 0

    async def finish_upgrade(self, target: Target, message: str) -> None:
        major = target.version.partition(".")[0]
        settings = json.dumps(_settings(target.database, major))
        identifier = system_identifier(message)
        await _annotate(target, "config", {"initialize": identifier, "config": settings, "history": None})

    async def delete_old_data(self, target: Target, member: str) -> None:
        await _execute(target, member, ["sh", "-c", deletion_script(target.version)])

    async def forget(self, target: Target) -> None:
        for entry in CONFIG_MAPS:
            name = f"{target.name}-{entry}"
            await target.client.delete(ConfigMap, name, namespace=target.namespace, missing_ok=True)


def _configuration(database: Database, major: str) -> Configuration:
    spec = database.spec
    return Configuration(database.name, spec.database, spec.owner, selector_of(database), spec.tls.enabled, major)


def _settings(database: Database, major: str) -> dict[str, Any]:
    """Return the settings for data of a major version."""
    spec = database.spec
    parameters = {**archive_parameters(database), **spec.parameters}
    return _configuration(database, major).settings(spec.synchronous, parameters)


def _major(target: Target, store: Store) -> str:
    """Return the major version of the data; before there is any, that of the target."""
    return store.major or target.version.partition(".")[0]


async def _store(target: Target) -> Store:
    found = await target.client.list(ConfigMap, namespace=target.namespace, labels=selector_of(target.database))
    return Store.of(target.name, found)


def _config_map(target: Target, entry: str, annotations: Mapping[str, str | None]) -> ConfigMap:
    """Return an entry of the store as Patroni would create it."""
    values = {key: value for key, value in annotations.items() if value is not None}
    found = child(ConfigMap, f"{target.name}-{entry}", selector_of(target.database), values)
    found.metadata.namespace = target.namespace
    return found


async def _annotate(target: Target, entry: str, annotations: Mapping[str, str | None]) -> None:
    patch = {"metadata": {"annotations": dict(annotations)}}
    await target.client.patch(ConfigMap, f"{target.name}-{entry}", patch, namespace=target.namespace)


def _patronictl(command: str, name: str, member: str) -> list[str]:
    return ["patronictl", "-c", f"{DIRECTORY}/{CONFIGURATION_FILE}", command, name, member, "--force"]


async def _run_sql(target: Target, script: str, options: str = "") -> str:
    """Run a script as the superuser, on the primary; return what it prints."""
    leader = (await _store(target)).leader
    if not leader:
        raise EngineError(f"{target.name} has no primary to connect to")
    return (await _execute(target, leader, ["sh", "-c", f"{PSQL} {options}"], script.encode())).stdout.decode()


def _parameter_violation(name: str, value: str) -> str:
    """Return why a parameter is refused; names are compared as the server does, without regard to case."""
    if not _PARAMETER.fullmatch(name):
        return f"parameters[{name[:80]!r}]: no name of a parameter"
    if reason := OWNED_PARAMETERS.get(name.lower()):
        return f"parameters.{name}: {reason}"
    return "" if value.isprintable() else f"parameters.{name}: the value has to be one line of printable characters"


async def _execute(
    target: Target, member: str, command: Sequence[str], stdin: bytes | None = None, allowed: Sequence[int] = (0,)
) -> ExecResult:
    """Run a command in a member; return its result, whose exit code is one of those allowed."""
    try:
        result = await target.client.exec(
            member, command, namespace=target.namespace, container="database", stdin=stdin
        )
    except (ApiError, TransportError, DecodeError) as error:
        raise EngineError(f"{command[0]} on {member}: {error}") from error
    if result.exit_code not in allowed:
        raise EngineError(f"{command[0]} on {member} ended with {result.exit_code}: {result.stderr.decode()[-500:]}")
    return result
