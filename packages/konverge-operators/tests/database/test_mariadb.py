"""MariaDB as an engine: its files, its parameters, its Secret, what it reads of its members, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from databases import NAME, database, running
from konverge.errors import Invalid
from konverge.k8s.core.v1 import Pod
from konverge.objects import from_wire
from konverge_cluster.testing import TestCluster
from konverge_operators.database.engine import Failure, Login
from konverge_operators.database.mariadb.archive.passwords import password_hash
from konverge_operators.database.mariadb.configuration import find_denied, options, script
from konverge_operators.database.mariadb.engine import MariaDB
from konverge_operators.database.mariadb.logins import create_login, invalidate_login
from konverge_operators.database.mariadb.member.api_server import REPORT
from konverge_operators.database.mariadb.member.decisions import EMPTY, Position, Record, Report
from konverge_operators.database.mariadb.member.positions import NO_UUID, mark_safe, parse_recovery, read_state
from konverge_operators.database.mariadb.states import observed_members
from konverge_operators.database.names import secrets_of
from konverge_operators.database.versions import find_violation, resolve_version

U = "44572ef4-e1c2-11f1-bbba-9af6430525c8"
STATE = "# GALERA saved state\nversion: 2.1\nuuid:    {uuid}\nseqno:   {seqno}\nsafe_to_bootstrap: 0\n"
RECOVERED = "2026-11-16 13:35:38 0 [Note] WSREP: Recovered position: {}\n"


def mariadb(**spec: Any) -> Any:
    return database(engine="mariadb", **{"version": "10.11", **spec})


def pod(ordinal: int, report: Report, *, ready: bool = True) -> Pod:
    metadata = {"name": f"{NAME}-{ordinal}", "annotations": {REPORT: report.format()}}
    containers = [{"name": "database", "image": "konverge-mariadb:10.11.19"}]
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return from_wire(Pod, {"metadata": metadata, "spec": {"containers": containers}, "status": status})


# Positions


def test_the_position_of_a_server_that_was_stopped_is_in_its_file(tmp_path: Path) -> None:
    (tmp_path / "grastate.dat").write_text(STATE.format(uuid=U, seqno=12))
    assert read_state(tmp_path) == Position(U, 12)
    with (tmp_path / "grastate.dat").open() as before:
        mark_safe(tmp_path)
        assert "safe_to_bootstrap: 0\n" in before.read()  # it was replaced, not written over
    assert "safe_to_bootstrap: 1\n" in (tmp_path / "grastate.dat").read_text()
    assert [one.name for one in tmp_path.iterdir()] == ["grastate.dat"]
    assert read_state(tmp_path) == Position(U, 12)


def test_the_position_after_a_crash_has_to_be_recovered(tmp_path: Path) -> None:
    (tmp_path / "grastate.dat").write_text(STATE.format(uuid=U, seqno=-1))
    assert read_state(tmp_path) is None
    assert parse_recovery(RECOVERED.format(f"{U}:12")) == Position(U, 12)
    assert parse_recovery(RECOVERED.format("00000000-0000-0000-0000-000000000000:-1")) == EMPTY
    assert parse_recovery("") is None


def test_data_that_is_not_complete_has_no_position(tmp_path: Path) -> None:
    """While all data is being fetched the recovery of the server would report the position of the donor."""
    assert read_state(tmp_path) == EMPTY
    (tmp_path / "grastate.dat").write_text("")
    assert read_state(tmp_path) == EMPTY
    (tmp_path / "ibdata1").touch()
    assert read_state(tmp_path) is None
    (tmp_path / "grastate.dat").write_text(STATE.format(uuid="00000000-0000-0000-0000-000000000000", seqno=-1))
    assert read_state(tmp_path) == EMPTY
    (tmp_path / "grastate.dat").write_text(STATE.format(uuid=U, seqno=-1))
    (tmp_path / "sst_in_progress").touch()
    assert read_state(tmp_path) == EMPTY
    (tmp_path / "grastate.dat").write_text("")
    assert read_state(tmp_path) == EMPTY


def test_complete_data_without_a_history_is_that_of_a_statement_that_was_killed(tmp_path: Path) -> None:
    """Galera has no history in its state while a statement changes a table."""
    (tmp_path / "grastate.dat").write_text(STATE.format(uuid=NO_UUID, seqno=-1))
    (tmp_path / "ibdata1").touch()
    assert read_state(tmp_path, is_complete=True) is None
    mark_safe(tmp_path, U)
    assert f"uuid:    {U}\nseqno:   -1\nsafe_to_bootstrap: 1\n" in (tmp_path / "grastate.dat").read_text()
    (tmp_path / "sst_in_progress").touch()
    assert read_state(tmp_path, is_complete=True) == EMPTY


# Configuration


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wsrep_on", "OFF"),
        ("wsrep-on", "OFF"),
        ("loose_wsrep_on", "OFF"),
        ("skip_grant_tables", "1"),
        ("WSREP_ON", "OFF"),
        ("datadir", "/x"),
        ("innodb_flush_log_at_trx_commit", "0"),
        ("innodb_data_home_dir", "/x"),
        ("innodb_doublewrit", "0"),
        ("innodb_d", "0"),
        ("innodb_data", "/x"),
        ("wsre", "OFF"),
        ("innodb", "OFF"),
        ("lower_case_table_names", "1"),
        ("Lower-Case-Table-Names", "1"),
        ("innodb_page_size", "4k"),
        ("innodb-page-siz", "4k"),
        ("enforce_storage_engine", "Aria"),
        ("proxy_protocol_networks", "*"),
        ("replicate_ignore_db", "app"),
        ("replicate", "app"),
        ("plugin_load_add", "x"),
        ("init_file", "/x"),
        ("read_only", "OFF"),
        ("ssl_ca", "x"),
        ("max_connections", "1\nwsrep_on=OFF"),
        ("!include /x", ""),
    ],
)
def test_a_parameter_that_the_engine_owns_is_refused_in_every_form(name: str, value: str) -> None:
    (message,) = find_denied({name: value, "max_allowed_packet": "64M"})
    assert message.startswith(f"parameters.{name}: ")


def test_an_option_whose_name_begins_like_one_that_is_refused_is_accepted() -> None:
    for name in ("general_log", "slow_query_log", "lc_messages", "innodb_flush_log_at_timeout", "max_connections"):
        assert not list(find_denied({name: "1"}))


def test_other_parameters_are_options_of_the_server() -> None:
    text = options({"max_connections": "50", "sql_mode": 'A "B" \\'})
    assert 'max_connections = "50"' in text
    assert 'sql_mode = "A \\"B\\" \\\\"' in text
    assert 'innodb_flush_log_at_trx_commit = "1"' in text
    assert text.startswith("[mysqld]\n")


def test_the_script_gives_the_owner_its_database_only() -> None:
    text = script("my_app", "keeper")
    assert "GRANT ALL PRIVILEGES ON `my\\_app`.* TO 'keeper'@'%'" in text
    assert "'root'@'%'" not in text
    assert text.count("IDENTIFIED BY PASSWORD '$SUPERUSER_PASSWORD'") == 1
    assert text.count("IDENTIFIED BY PASSWORD '$APPLICATION_PASSWORD'") == 1
    assert "IDENTIFIED BY '" not in text


def test_a_login_is_created_by_a_hash_and_locked_at_its_end() -> None:
    assert password_hash("secret") == "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"
    statements = create_login(Login("app", "secret"), "app")
    assert "secret" not in statements
    assert statements.endswith(f"IDENTIFIED BY PASSWORD '{password_hash('secret')}' ACCOUNT UNLOCK;\n")
    assert invalidate_login("app") == "ALTER USER IF EXISTS 'app'@'%' ACCOUNT LOCK;\n"


def test_the_connection_has_the_same_keys_as_that_of_postgresql() -> None:
    found = MariaDB().connection(mariadb(), "db-rw", Login("app", "a/b"))
    assert found["uri"] == "mysql://app:a%2Fb@db-rw:3306/app"
    assert set(found) - {"provider"} == {"type", "host", "port", "username", "password", "database", "uri"}


def test_with_tls_clients_and_members_need_it() -> None:
    wanted = mariadb(tls={"enabled": True})
    found = MariaDB().render(wanted, "10.11.19", secrets_of(wanted))
    text = found.config["my.cnf"]
    assert 'require_secure_transport = "ON"' in text
    assert 'ssl_key = "/etc/database-tls/tls.key"' in text
    assert text.endswith("[sst]\nssl-mode = VERIFY_CA\n")
    assert {"name": "TLS", "value": "/etc/database-tls"} in found.container["env"]
    assert found.container["volumeMounts"] == [{"name": "tls", "mountPath": "/etc/database-tls", "readOnly": True}]
    assert [one["secret"]["secretName"] for one in found.volumes] == [f"{NAME}-tls"]
    connection = MariaDB().connection(wanted, "db-rw", Login("app", "x"))
    assert connection["uri"] == "mysql://app:x@db-rw:3306/app?ssl-mode=REQUIRED"
    assert connection["ssl-mode"] == "REQUIRED"
    without = mariadb()
    assert "ssl" not in MariaDB().render(without, "10.11.19", secrets_of(without)).config["my.cnf"]


def test_the_members_are_made_of_the_same_parts_whenever_they_are_rendered() -> None:
    wanted = mariadb(parameters={"max_connections": "50"})
    first = MariaDB().render(wanted, "10.11.19", secrets_of(wanted))
    assert first == MariaDB().render(wanted, "10.11.19", secrets_of(wanted))
    assert first.container["image"] == "konverge-mariadb:10.11.19"
    assert "max_connections" in first.config["my.cnf"]
    assert first.role_rules[1]["resourceNames"] == [f"{NAME}-galera"]
    assert not any("password" in text.lower().replace("_password", "") for text in (first.config["my.cnf"],))


def test_a_version_is_a_release_of_a_known_major() -> None:
    engine = MariaDB()
    assert resolve_version(engine.majors, "10.11") == "10.11.19"
    assert resolve_version(engine.majors, "10.11.18") == "10.11.18"
    assert find_violation(mariadb(), engine) == ""
    assert "version 18 is not known" in find_violation(mariadb(version="18"), engine)
    assert "parameters.wsrep_on" in find_violation(mariadb(parameters={"wsrep_on": "OFF"}), engine)
    assert "owner: root" in find_violation(mariadb(owner="root"), engine)
    assert "database: mysql" in find_violation(mariadb(database="mysql"), engine)


# States

SERVES = Report("running", component=True, synced=True)
RECORD = Record(U, f"{NAME}-1", (f"{NAME}-0", f"{NAME}-1"))


def test_the_recorded_member_that_serves_is_the_primary() -> None:
    found = observed_members([pod(0, SERVES), pod(1, SERVES), pod(2, Report("starting"))], RECORD, "10.11")
    assert (found.initialized, found.primary, found.major) == (True, f"{NAME}-1", "10.11")
    assert [one.role for one in found.members] == ["replica", "primary", "unknown"]
    assert [one.state for one in found.members] == ["synced", "synced", "starting"]
    assert [one.healthy for one in found.members] == [True, True, False]
    assert found.failure is None


def test_a_member_without_a_quorum_or_not_ready_is_no_primary() -> None:
    for one in (pod(1, Report("running", reason="NoQuorum", message="bring it back")), pod(1, SERVES, ready=False)):
        assert observed_members([one], RECORD, "10.11").primary == ""


def test_what_members_cannot_repair_is_reported() -> None:
    lost = pod(0, Report("waiting", reason="NoQuorum", message="bring it back"))
    behind = pod(1, Report("waiting", reason="Diverged", message="save it"))
    assert observed_members([lost], RECORD, "10.11").failure == Failure("NoQuorum", "bring it back")
    assert observed_members([lost, behind], RECORD, "10.11").failure == Failure("Diverged", "save it")


def test_before_there_is_a_record_nothing_is_initialised() -> None:
    found = observed_members([pod(0, SERVES)], None, "10.11")
    assert (found.initialized, found.primary, found.major) == (False, "", "")


# What the API server refuses


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"replicas": 2}, "odd number of replicas"),
        ({"replicas": 3, "synchronous": "strict"}, "set synchronous to off or on"),
    ],
)
async def test_what_the_engine_cannot_do_is_refused(cluster: TestCluster, spec: dict[str, Any], message: str) -> None:
    async with running(cluster) as world:
        with pytest.raises(Invalid, match=message):
            await world.client.create(mariadb(**spec))
