"""MariaDB with Galera as an engine of the Database operator.

The record is the only way in: a switchover is written there, and the members follow. What needs a member itself (a
login, a rebuild) is a command in its container, so that the superuser never connects over the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from konverge import NotFound
from konverge.client import ExecResult
from konverge.errors import ApiError, DecodeError, TransportError
from konverge.k8s.core.v1 import ConfigMap, Pod
from konverge.objects import now
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
from konverge_operators.database.mariadb.backups import (
    ARCHIVE_STATE,
    backup_container,
    deletion_container,
    parse_state,
    recovery_container,
)
from konverge_operators.database.mariadb.configuration import (
    DIRECTORY,
    OPTIONS_FILE,
    REPLICATION,
    SCRIPT_FILE,
    SUPERUSER,
    find_denied,
    options,
    script,
)
from konverge_operators.database.mariadb.logins import alternate_of, create_login, invalidate_login
from konverge_operators.database.mariadb.member.api_server import ROLE, record_name
from konverge_operators.database.mariadb.member.decisions import Record
from konverge_operators.database.mariadb.member.positions import NO_UUID
from konverge_operators.database.mariadb.members import CLIENT, DATA, MARIADB_PORT, MEMBER_PORTS, RELOAD, container
from konverge_operators.database.mariadb.permissions import rules
from konverge_operators.database.mariadb.states import observed_members, report_of
from konverge_operators.database.mariadb.versions import MAJORS
from konverge_operators.database.names import certificate_secret, selector_of
from konverge_operators.manifests import Json

__all__ = ["MariaDB"]

_NOT_YET: Final = "mariadb does not have it yet"


class MariaDB:
    """MariaDB with Galera."""

    name = "mariadb"
    majors: Sequence[Major] = MAJORS
    operator_permissions: Sequence[Permission] = (
        (ConfigMap, ("get", "create", "patch", "delete"), ""),
        (Pod, ("list", "patch"), ""),
        (Pod, ("create", "get"), "exec"),
    )

    # Pure

    def find_violation(self, database: Database) -> str:
        spec = database.spec
        found = list(find_denied(spec.parameters))
        if spec.owner in (SUPERUSER, REPLICATION) or spec.owner.startswith(("mysql", "mariadb")):
            found.append(f"owner: {spec.owner} is a user of the engine")
        if spec.database in ("mysql", "sys", "information_schema", "performance_schema", "test"):
            found.append(f"database: {spec.database} belongs to the engine")
        return "; ".join(found)

    def render(self, database: Database, version: str, secrets: SecretNames) -> MemberTemplate:
        spec = database.spec
        return MemberTemplate(
            container=container(version, database.name, selector_of(database), secrets, tls=spec.tls.enabled),
            port=MARIADB_PORT,
            config={
                OPTIONS_FILE: options(spec.parameters, tls=spec.tls.enabled),
                SCRIPT_FILE: script(spec.database, spec.owner),
            },
            config_path=DIRECTORY,
            data_path=DATA,
            member_ports=MEMBER_PORTS,
            volumes=tls_volumes(certificate_secret(database), tls=spec.tls.enabled),
            role_rules=rules(database.name),
            primary_labels={ROLE: "primary"},
            replica_labels={ROLE: "replica"},
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
        user, password, name = (quote(one, safe="") for one in (login.username, login.password, database.spec.database))
        mode = {"ssl-mode": "REQUIRED"} if database.spec.tls.enabled else {}
        query = "".join(f"?{key}={value}" for key, value in mode.items())
        return {
            "type": "mysql",
            "provider": "mariadb",
            "host": host,
            "port": str(MARIADB_PORT),
            "username": login.username,
            "password": login.password,
            "database": database.spec.database,
            "uri": f"mysql://{user}:{password}@{host}:{MARIADB_PORT}/{name}{query}",
            **mode,
        }

    def member_changed(self, before: Pod, after: Pod) -> bool:
        return report_of(before) != report_of(after)

    # Backups

    def render_backup(self, database: Database, version: str, secrets: SecretNames) -> Json:
        return backup_container(database, version, secrets)

    def render_deletion(self, version: str) -> Json:
        return deletion_container(version)

    def render_recovery(self, database: Database, version: str, secrets: SecretNames) -> Json:
        return recovery_container(database, version, secrets)

    async def observe_archive(self, target: Target) -> ArchiveState:
        return parse_state(await _execute(target, await _primary(target), ARCHIVE_STATE), now())

    # What the rules of the API refuse for this engine, so that it is never asked for

    def render_upgrade(self, database: Database, major: str, version: str) -> Json:
        raise EngineError(f"{database.key}: from {major} to {version}: {_NOT_YET}")

    async def finish_upgrade(self, target: Target, message: str) -> None:  # noqa: ARG002
        raise EngineError(f"{target.name}: an upgrade: {_NOT_YET}")

    async def delete_old_data(self, target: Target, member: str) -> None:
        """Do nothing: there is no data of another major version."""

    # Members

    async def observe(self, target: Target) -> ObservedMembers:
        return observed_members(target.pods, await _record(target), self.majors[0].name)

    async def configure(self, target: Target) -> None:
        """Do nothing: parameters are in a file, whose change replaces the pods one by one."""

    async def switchover(self, target: Target, to: str) -> None:
        record = await _record(target)
        if record is not None and record.primary != to and record.switchover != to:
            change = {"data": {"switchover": to}}
            await target.client.patch(ConfigMap, record_name(target.name), change, namespace=target.namespace)

    async def restart(self, target: Target, member: str) -> None:
        """Do nothing: no parameter waits for a restart of the server alone."""

    async def rebuild(self, target: Target, member: str) -> None:
        """Let a replica have no history, and stop its server: it fetches all data again."""
        state = f"version: 2.1\\nuuid:    {NO_UUID}\\nseqno:   -1\\nsafe_to_bootstrap: 0\\n"
        command = (
            f'cd "$DATA" && rm -f complete diverged && printf "{state}" > data/grastate.dat'
            ' && kill -KILL "$(cat data/mariadbd.pid)"'
        )
        await _execute(target, member, command)

    async def set_login(self, target: Target, login: Login) -> None:
        await _run_sql(target, create_login(login, target.database.spec.database))

    async def delete_login(self, target: Target, username: str) -> None:
        await _run_sql(target, invalidate_login(username))

    async def reload_certificate(self, target: Target, member: str, digest: str) -> bool:
        result = await _attempt(target, member, reload_script(digest, RELOAD))
        if result.exit_code not in (0, NOT_YET):
            raise EngineError(f"the certificate of {member}: {result.stderr.decode()[-500:]}")
        return result.exit_code == 0

    async def forget(self, target: Target) -> None:
        name = record_name(target.name)
        await target.client.delete(ConfigMap, name, namespace=target.namespace, missing_ok=True)


async def _record(target: Target) -> Record | None:
    try:
        found = await target.client.get(ConfigMap, record_name(target.name), namespace=target.namespace)
    except NotFound:
        return None
    return Record.parse(found.data or {})


async def _run_sql(target: Target, statements: str) -> None:
    """Run statements as the superuser, on the primary."""
    await _execute(target, await _primary(target), CLIENT, statements.encode())


async def _primary(target: Target) -> str:
    record = await _record(target)
    if record is None or not record.primary:
        raise EngineError(f"{target.name} has no primary to connect to")
    return record.primary


async def _execute(target: Target, member: str, command: str, stdin: bytes | None = None) -> str:
    """Run a command of a shell in a member; return what it prints."""
    result = await _attempt(target, member, command, stdin)
    if result.exit_code:
        raise EngineError(f"a command on {member} ended with {result.exit_code}: {result.stderr.decode()[-500:]}")
    return result.stdout.decode()


async def _attempt(target: Target, member: str, command: str, stdin: bytes | None = None) -> ExecResult:
    """Run a command of a shell in a member."""
    try:
        return await target.client.exec(
            member, ["sh", "-c", command], namespace=target.namespace, container="database", stdin=stdin
        )
    except (ApiError, TransportError, DecodeError) as error:
        raise EngineError(f"a command on {member}: {error}") from error
