"""What Patroni reads: least privilege, and nothing in the file that may change later."""

from __future__ import annotations

import json

import pytest
import yaml

from konverge import ObjectMeta
from konverge.objects import from_wire, to_wire
from konverge_operators.database.api import Database, DatabaseSpec, Scheduling
from konverge_operators.database.engine import Login
from konverge_operators.database.names import secrets_of, selector_of
from konverge_operators.database.postgresql.configuration import (
    LOOP_WAIT,
    OWNED_PARAMETERS,
    RETRY_TIMEOUT,
    TTL,
    Configuration,
)
from konverge_operators.database.postgresql.engine import PostgreSQL
from konverge_operators.database.postgresql.versions import MAJORS, image
from konverge_operators.database.upgrade_jobs import upgrade_job


def new_database(**spec: object) -> Database:
    values = {"version": "18", "database": "shop", "owner": "keeper", **spec}
    return Database(metadata=ObjectMeta(name="db", namespace="test"), spec=DatabaseSpec(**values))  # type: ignore[arg-type]


def test_the_superuser_connects_from_its_own_pod_only() -> None:
    rules = Configuration("db", "shop", "keeper").access_rules()

    assert [rule for rule in rules if rule.split()[2] == "postgres"] == ["host all postgres samehost scram-sha-256"]
    assert all(rule.endswith(" scram-sha-256") for rule in rules)
    assert 'host "shop" +"keeper" all scram-sha-256' in rules


def test_the_leader_gives_up_before_its_lock_is_free() -> None:
    assert LOOP_WAIT + 2 * RETRY_TIMEOUT <= TTL


@pytest.mark.parametrize(("synchronous", "mode", "strict"), [("off", False, False), ("on", True, False)])
def test_a_crashed_leader_restarts_only_if_it_alone_has_the_last_commits(
    synchronous: str, mode: bool, strict: bool
) -> None:
    settings = Configuration("db").settings(synchronous, {"work_mem": "8MB"})  # type: ignore[arg-type]

    assert (settings["synchronous_mode"], settings["synchronous_mode_strict"]) == (mode, strict)
    assert bool(settings["primary_start_timeout"]) is (synchronous == "off")
    assert settings["failsafe_mode"] is True
    assert settings["postgresql"]["parameters"]["work_mem"] == "8MB"


def test_what_changes_in_place_does_not_replace_the_pods() -> None:
    engine = PostgreSQL()
    database = new_database()
    before = engine.render(database, "18.6", secrets_of(database))

    changed = new_database(parameters={"work_mem": "8MB"}, synchronous="strict", replicas=3)

    assert engine.render(changed, "18.6", secrets_of(changed)) == before
    assert engine.render(database, "18.4", secrets_of(database)) != before


def test_no_password_is_in_what_is_rendered() -> None:
    database = new_database()
    template = PostgreSQL().render(database, "18.6", secrets_of(database))

    passwords = [one for one in template.container["env"] if "PASSWORD" in one["name"]]
    assert passwords
    assert all(set(one) == {"name", "valueFrom"} for one in passwords)
    assert "password" not in template.config["patroni.yaml"].replace("password_encryption", "")


def test_patroni_finds_its_objects_by_the_labels_of_the_members() -> None:
    database = new_database()
    file = yaml.safe_load(PostgreSQL().render(database, "18.6", secrets_of(database)).config["patroni.yaml"])

    kubernetes = file["kubernetes"]
    assert {**kubernetes["labels"], kubernetes["scope_label"]: file["scope"]} == selector_of(database)
    assert kubernetes["use_endpoints"] is False


def test_the_members_write_only_their_own_objects() -> None:
    database = new_database()
    rules = PostgreSQL().render(database, "18.6", secrets_of(database)).role_rules

    writes = {verb for rule in rules if "resourceNames" not in rule for verb in rule["verbs"]}
    assert writes == {"create", "list", "watch"}
    named = [name for rule in rules for name in rule.get("resourceNames", ())]
    assert named
    assert all(name.startswith("db-") for name in named)
    allowed = {(str(kind.__name__), verb) for kind, verbs, _ in PostgreSQL.operator_permissions for verb in verbs}  # type: ignore[union-attr]
    kinds = {"configmaps": "ConfigMap", "pods": "Pod"}
    needed = {(kinds[resource], verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert needed <= allowed, "an operator grants only what it may do itself"


def test_parameters_of_the_operator_are_denied_with_a_reason() -> None:
    for name in ("fsync", "synchronous_commit", "listen_addresses", "archive_command", "ssl"):
        assert OWNED_PARAMETERS[name]
    assert "work_mem" not in OWNED_PARAMETERS


@pytest.mark.parametrize(
    ("parameters", "violation"),
    [
        ({"work_mem": "8MB", "TimeZone": "Europe/Zürich", "auto_explain.log_format": "json"}, ""),
        ({"FSYNC": "off"}, "parameters.FSYNC: "),
        ({"Archive_Command": "true"}, "parameters.Archive_Command: "),
        ({"work_mem\nfsync": "off"}, "no name of a parameter"),
        ({"": "off"}, "no name of a parameter"),
        ({"work_mem": "8MB\nfsync = off"}, "one line of printable characters"),
    ],
)
def test_parameters_are_compared_as_the_server_reads_them(parameters: dict[str, str], violation: str) -> None:
    found = PostgreSQL().find_violation(new_database(parameters=parameters))
    assert violation in found
    assert bool(found) == bool(violation)


@pytest.mark.parametrize(
    ("spec", "violation"),
    [
        ({"owner": "postgres"}, "owner: postgres is a role of the engine"),
        ({"owner": "rewind"}, "owner: rewind is a role of the engine"),
        ({"owner": "pg_monitor"}, "owner: pg_monitor is a role of the engine"),
        ({"database": "template1"}, "database: template1 belongs to the engine"),
        ({"owner": "shop", "database": "shop"}, ""),
    ],
)
def test_names_of_the_engine_are_refused(spec: dict[str, str], violation: str) -> None:
    assert PostgreSQL().find_violation(new_database(**spec)) == violation


def test_the_configuration_of_an_upgrade_escapes_values() -> None:
    container = PostgreSQL().render_upgrade(new_database(parameters={"search_path": "it's \\"}), "17", "18.6")
    (parameters,) = (one["value"] for one in container["env"] if one["name"] == "PARAMETERS")
    assert "search_path = 'it''s \\\\'\n" in parameters + "\n"


def test_jobs_run_where_members_may_run() -> None:
    scheduling = {"nodeSelector": {"disk": "fast"}, "tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    job = upgrade_job(new_database(scheduling=from_wire(Scheduling, scheduling)), PostgreSQL(), "17", "18.6")
    assert job.spec is not None
    pods = to_wire(job.spec.template)["spec"]
    assert {name: pods[name] for name in scheduling} == scheduling


def test_a_connection_has_the_keys_of_a_service_binding() -> None:
    found = PostgreSQL().connection(new_database(), "db-rw.test.svc", Login("keeper", "a/b c"))

    assert set(found) == {"type", "host", "port", "username", "password", "database", "uri"}
    assert found["uri"] == "postgresql://keeper:a%2Fb%20c@db-rw.test.svc:5432/shop"
    assert json.dumps(found)


def test_every_older_major_can_be_upgraded() -> None:
    assert [one.name for one in MAJORS] == sorted(one.name for one in MAJORS)
    assert MAJORS[-1].upgrades_from == tuple(one.name for one in MAJORS[:-1])
    assert all(one.newest.startswith(f"{one.name}.") for one in MAJORS)
    assert image("18.6") == "konverge-postgresql:18.6"
