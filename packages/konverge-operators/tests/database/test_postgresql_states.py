"""What Patroni has written into the cluster, and what follows from it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from konverge import ObjectMeta
from konverge.k8s.core.v1 import ConfigMap, Pod
from konverge.objects import from_wire
from konverge_operators.database.engine import Login, Member
from konverge_operators.database.postgresql.configuration import ROLE_LABEL
from konverge_operators.database.postgresql.logins import (
    alternate_of,
    create_login,
    invalidate_login,
    scram_verifier,
)
from konverge_operators.database.postgresql.states import Store, observed_members


def pod(name: str, label: str = "", *, ready: bool = True, **status: Any) -> Pod:
    metadata = {"name": name, "labels": {ROLE_LABEL: label} if label else {}}
    if status:
        metadata["annotations"] = {"status": json.dumps(status)}
    containers = [{"name": "database", "image": "konverge-postgresql:18.6"}]
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    content = {"metadata": metadata, "spec": {"containers": containers}, "status": {"conditions": conditions}}
    return from_wire(Pod, {"apiVersion": "v1", "kind": "Pod", **content})


def store(**entries: dict[str, str]) -> Store:
    return Store.of(
        "db",
        [ConfigMap(metadata=ObjectMeta(name=f"db-{entry}", annotations=values)) for entry, values in entries.items()],
    )


PRIMARY: dict[str, Any] = {"state": "running", "role": "primary", "timeline": 2}
REPLICA: dict[str, Any] = {
    "state": "running",
    "role": "replica",
    "timeline": 2,
    "replication_state": "streaming",
    "xlog_location": 90,
}
SETTINGS = {"ttl": 20}
STORE = store(
    config={"initialize": "7", "config": json.dumps(SETTINGS)},
    leader={"leader": "db-0", "optime": "100"},
    sync={"sync_standby": "db-1"},
)


def test_a_leader_and_a_replica_are_healthy() -> None:
    observed = observed_members([pod("db-0", "primary", **PRIMARY), pod("db-1", "replica", **REPLICA)], STORE, SETTINGS)

    assert observed.initialized
    assert observed.config_current
    assert not observed.switchover_pending
    assert observed.primary == "db-0"
    assert observed.member("db-0") == Member("db-0", "primary", "running", True, timeline=2, version="18.6")
    replica = Member("db-1", "replica", "streaming", True, 2, 10, synchronous=True, version="18.6")
    assert observed.member("db-1") == replica


def test_a_member_that_lost_the_lock_is_no_primary_whatever_its_label_says() -> None:
    observed = observed_members([pod("db-0", "replica", **REPLICA), pod("db-1", "primary", **PRIMARY)], STORE, SETTINGS)

    assert observed.primary == ""
    assert observed.member("db-0").role == "unknown", "it has the lock, and has not promoted yet"
    assert observed.member("db-1").role == "unknown"


def test_a_leader_that_does_not_answer_is_no_primary() -> None:
    assert observed_members([pod("db-0", "primary", ready=False, **PRIMARY)], STORE, SETTINGS).primary == ""


def test_a_replica_that_does_not_follow_is_not_healthy() -> None:
    still = {**REPLICA, "replication_state": "in archive recovery"}
    observed = observed_members([pod("db-1", "replica", **still), pod("db-2")], STORE, SETTINGS)

    assert not observed.member("db-1").healthy
    assert observed.member("db-2") == Member("db-2")


def test_an_empty_store_is_not_initialised() -> None:
    empty = observed_members([pod("db-0")], store(), SETTINGS)
    locked = observed_members([pod("db-0")], store(config={"initialize": ""}), SETTINGS)

    assert not empty.initialized
    assert not locked.initialized, "a member holds the key while it initialises"
    assert empty.config_current, "there is nothing yet that could be changed"


def test_a_request_and_a_change_are_pending_until_patroni_has_removed_and_applied_them() -> None:
    pending = store(failover={"leader": "db-0"}, config={"initialize": "7", "config": '{"ttl": 30}'})
    observed = observed_members([], pending, SETTINGS)

    assert observed.switchover_pending
    assert not observed.config_current


def test_a_verifier_is_what_postgresql_stores() -> None:
    """The example of RFC 7677: user, password "pencil", and the server signature that follows from the server key."""
    verifier = scram_verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))

    method, iterations, keys = verifier.split("$")
    assert (method, iterations) == ("SCRAM-SHA-256", "4096:W22ZaJ0SNY7soEsUEjb6gQ==")
    message = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,"
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.new(base64.b64decode(keys.split(":")[1]), message.encode(), hashlib.sha256).digest()
    assert base64.b64encode(signature).decode() == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_login_has_the_rights_of_the_owner_and_no_password_in_its_statements() -> None:
    script = create_login(Login("keeper_alternate", "secret"), "keeper", b"salt")

    assert 'GRANT "keeper" TO "keeper_alternate";' in script
    assert 'SET role TO "keeper";' in script
    assert "secret" not in script
    assert "GRANT" not in create_login(Login("keeper", "secret"), "keeper", b"salt")
    assert "NOLOGIN PASSWORD NULL" in invalidate_login("keeper")


def test_the_second_login_has_a_name_of_its_own_that_postgresql_does_not_cut() -> None:
    for owner in ("app", "x" * 63):
        assert alternate_of(owner) != owner
        assert len(alternate_of(owner)) <= 63
