"""The requests that each verb sends, and its result. tests/contract has the tests with real servers."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from typing import Any

import pytest

from konverge.client.client import Client
from konverge.client.impersonation import Impersonation
from konverge.client.options import ClientOptions
from konverge.client.wait import exists, field_equals, has_condition, is_deleted, is_deployment_complete
from konverge.errors import (
    Conflict,
    DecodeError,
    Expired,
    Forbidden,
    NotFound,
    TooManyRequests,
    UnknownKind,
    WaitTimeout,
)
from konverge.objects import (
    Key,
    Kind,
    LabelSelector,
    Model,
    ObjectMeta,
    Resource,
    Scope,
    Unstructured,
    decode,
    encode,
    field,
)
from konverge.wire import BufferedResponse, Request
from scripted import ScriptedTransport, ok, refusal

LAMP = Kind("ex.io", "v1", "Lamp", "lamps")
ROOM = Kind("ex.io", "v1", "Room", "rooms", Scope.CLUSTER)


class LampSpec(Model):
    watts: int | None = None


class LampStatus(Model):
    lit: bool | None = None


class Lamp(Resource, identity=LAMP):
    spec: LampSpec = field(default_factory=LampSpec)
    status: LampStatus = field(default_factory=LampStatus)


WIRE: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "shop", "uid": "u1", "resourceVersion": "7"},
    "spec": {"watts": 5, "socket": "E27"},
}
DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "ex.io"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "lamps",
                            "responseKind": {"kind": "Lamp"},
                            "scope": "Namespaced",
                            "singularResource": "lamp",
                            "shortNames": ["lp"],
                        }
                    ],
                }
            ],
        }
    ],
}


def lamp() -> Lamp:
    return decode(Lamp, json.dumps(WIRE).encode())


def client(*answers: Any, **settings: Any) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*(answers or (ok(WIRE),)))
    return Client(transport, options=ClientOptions(namespace="shop", **settings)), transport


async def test_a_class_returns_typed_objects_and_a_kind_unstructured_ones() -> None:
    api, transport = client()
    typed = await api.get(Lamp, "a")
    untyped = await api.get(LAMP, "a", namespace="other")
    assert typed.spec.watts == 5
    assert untyped["spec"] == {"watts": 5, "socket": "E27"}
    assert [r.path for r in transport.requests] == [
        "/apis/ex.io/v1/namespaces/shop/lamps/a",
        "/apis/ex.io/v1/namespaces/other/lamps/a",
    ]


async def test_a_key_says_where() -> None:
    api, transport = client()
    await api.get(Lamp, Key("x", "b"))
    assert transport.last.path == "/apis/ex.io/v1/namespaces/x/lamps/b"
    with pytest.raises(ValueError, match="differ"):
        await api.get(Lamp, Key("x", "b"), namespace="y")
    with pytest.raises(ValueError, match="cluster-scoped"):
        await api.get(ROOM, "r", namespace="y")


@pytest.mark.parametrize("name", ["", "..", "a/b"])
async def test_a_name_cannot_leave_its_place(name: str) -> None:
    api, transport = client()
    with pytest.raises(ValueError, match="name"):
        await api.get(Lamp, name)
    assert transport.requests == []


async def test_a_name_is_looked_up_by_discovery_once() -> None:
    api, transport = client(ok({}), ok(DISCOVERY), ok(WIRE))
    for name in ("lamps.ex.io", "lamp", "lp", "Lamp.ex.io", "lamps.v1.ex.io"):
        await api.get(name, "a")
    assert [r.path for r in transport.requests[:2]] == ["/api", "/apis"]
    assert len(transport.requests) == 7


async def test_discovery_is_repeated_before_a_kind_is_unknown() -> None:
    nothing = ok({"kind": "APIGroupDiscoveryList", "items": []})
    api, transport = client(nothing, nothing, nothing, nothing, nothing, ok(DISCOVERY), ok(WIRE))
    with pytest.raises(UnknownKind, match=r"discover lamps: the server does not serve this kind \(is its CRD"):
        await api.get("lamps", "a")
    assert (len(transport.requests), asyncio.get_running_loop().time()) == (4, 1.0)
    assert (await api.get("lamps", "a")).kind == "Lamp"


async def test_legacy_discovery_serves_where_the_aggregated_one_is_missing() -> None:
    api, _ = client(
        ok({"kind": "APIVersions", "versions": []}),
        ok({"kind": "APIGroupList", "groups": [{"name": "ex.io", "versions": [{"groupVersion": "ex.io/v1"}]}]}),
        ok({"resources": [{"name": "lamps", "kind": "Lamp", "namespaced": True}, {"name": "lamps/status"}]}),
    )
    (served,) = await api.discovery.resources()
    assert (served.kind.plural, served.subresources) == ("lamps", ("status",))


async def test_a_list_has_its_version_and_items_that_know_their_kind() -> None:
    api, transport = client(ok({"metadata": {"resourceVersion": "9"}, "items": [WIRE, WIRE]}))
    lamps = await api.list(Lamp, namespace="shop", labels="a=b", fields="metadata.name=a")
    assert (len(lamps), lamps.resource_version, lamps[0].spec.watts) == (2, "9", 5)
    assert transport.last.query == (("labelSelector", "a=b"), ("fieldSelector", "metadata.name=a"))
    untyped = await api.list(LAMP)
    assert (untyped[0].api_version, untyped[0].kind) == ("ex.io/v1", "Lamp")
    assert transport.last.path == "/apis/ex.io/v1/lamps"


async def test_an_empty_list_may_be_null() -> None:
    api, _ = client(ok({"metadata": {"resourceVersion": "9"}, "items": None}))
    assert await api.list(Lamp) == []


async def test_pages_follow_each_other_to_the_last() -> None:
    first = {"metadata": {"continue": "t1", "remainingItemCount": 1}, "items": [WIRE]}
    api, transport = client(ok(first), ok({"metadata": {}, "items": [WIRE]}))
    pages = [page async for page in api.pages(Lamp, size=1)]
    assert [len(page) for page in pages] == [1, 1]
    assert transport.last.query == (("limit", "1"), ("continue", "t1"))


async def test_a_watch_gives_events_and_raises_its_error_frame() -> None:
    frames = [
        {"type": "ADDED", "object": WIRE},
        {"type": "DELETED", "object": {"metadata": {"resourceVersion": "8"}}},
        {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}},
    ]
    body = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    api, transport = client(BufferedResponse(200, body))
    seen = []
    with pytest.raises(Expired, match="watch Lamp: too old"):
        async for event in api.watch(Lamp, resource_version="5"):
            seen.append((event.type, event.object.resource_version))
    assert seen == [("ADDED", "7"), ("DELETED", "8")]
    assert transport.last.stream
    assert ("resourceVersion", "5") in transport.last.query


async def test_a_watch_that_ends_in_mid_frame_is_an_error() -> None:
    api, _ = client(BufferedResponse(200, b'{"type":"ADDED","obj'))
    with pytest.raises(DecodeError, match="middle of a frame"):
        async for _ in api.watch(Lamp):
            pass


async def test_an_update_sends_only_the_edit_under_the_version_that_was_read() -> None:
    api, transport = client()
    thing = lamp()
    thing.spec.watts = 9
    await api.update(thing)
    assert transport.last.method == "PATCH"
    assert transport.last.headers["content-type"] == "application/merge-patch+json"
    assert transport.sent() == {"spec": {"watts": 9}, "metadata": {"resourceVersion": "7"}}


async def test_an_update_without_an_edit_sends_nothing() -> None:
    api, transport = client()
    thing = lamp()
    assert await api.update(thing) is thing
    assert await api.update_status(thing) is thing
    assert transport.requests == []


async def test_an_update_of_the_status_leaves_other_edits_unsent() -> None:
    api, transport = client()
    thing = lamp()
    thing.spec.watts = 9
    thing.status.lit = True
    await api.update_status(thing)
    assert transport.last.path.endswith("/lamps/a/status")
    assert transport.sent() == {"status": {"lit": True}, "metadata": {"resourceVersion": "7"}}


async def test_an_unstructured_object_is_updated_as_a_whole_and_needs_its_version() -> None:
    api, transport = client(ok({}), ok(DISCOVERY), ok(WIRE))
    thing = Unstructured({"apiVersion": "ex.io/v1", "kind": "Lamp", **copy.deepcopy(WIRE)})
    await api.update(thing)
    assert (transport.last.method, transport.sent()) == ("PUT", thing)
    del thing["metadata"]["resourceVersion"]
    with pytest.raises(ValueError, match="it has no resourceVersion"):
        await api.update(thing)


async def test_a_create_of_an_object_without_a_namespace_goes_to_the_clients_own() -> None:
    api, transport = client()
    await api.create(Lamp(metadata=ObjectMeta(name="a"), spec=LampSpec(watts=5)))
    assert (transport.last.method, transport.last.path) == ("POST", "/apis/ex.io/v1/namespaces/shop/lamps")
    assert transport.sent()["spec"] == {"watts": 5}


async def test_options_are_sent_with_every_write() -> None:
    api, transport = client()
    strict = api.using(dry_run=True, field_validation="Strict", field_manager="me")
    await strict.create(lamp())
    assert transport.last.query == (("dryRun", "All"), ("fieldManager", "me"), ("fieldValidation", "Strict"))
    await strict.delete(Lamp, "a")
    assert transport.sent()["dryRun"] == ["All"]
    await api.create(lamp())
    assert list(transport.last.query) == [("fieldManager", "konverge")]


async def test_impersonation_is_in_the_headers_of_that_client_only() -> None:
    api, transport = client()
    await api.using(impersonate=Impersonation("alice", groups=("dev", "ops"))).get(Lamp, "a")
    assert transport.last.extra_headers == (
        ("impersonate-user", "alice"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
    )
    await api.get(Lamp, "a")
    assert not list(transport.last.extra_headers)


@pytest.mark.parametrize(
    ("patch_type", "media"),
    [("merge", "merge-patch+json"), ("json", "json-patch+json"), ("strategic", "strategic-merge-patch+json")],
)
async def test_patches_have_their_media_type(patch_type: Any, media: str) -> None:
    api, transport = client()
    await api.patch(Lamp, "a", {"spec": {}}, patch_type=patch_type, subresource="status")
    assert transport.last.headers["content-type"] == f"application/{media}"
    assert transport.last.path.endswith("/a/status")


async def test_the_error_for_a_wrong_patch_type_lists_the_right_ones() -> None:
    api, _ = client()
    with pytest.raises(ValueError, match="write one of json, merge, strategic, or use apply"):
        await api.patch(Lamp, "a", {}, patch_type="apply")  # type: ignore[call-overload]


async def test_an_apply_names_its_manager_and_leaves_managed_fields_out() -> None:
    api, transport = client()
    thing = decode(Lamp, b'{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{"watts":1}}')
    await api.using(field_manager="lights").apply(thing, force=True)
    assert transport.last.headers["content-type"] == "application/apply-patch+yaml"
    assert transport.last.query == (("fieldManager", "lights"), ("fieldValidation", "Ignore"), ("force", "true"))
    assert transport.sent() == {
        "apiVersion": "ex.io/v1",
        "kind": "Lamp",
        "metadata": {"name": "a"},
        "spec": {"watts": 1},
    }


async def test_an_object_is_deleted_only_if_it_is_still_that_one() -> None:
    api, transport = client()
    await api.delete(lamp(), propagation="Foreground", grace_period=0)
    sent = transport.sent()
    assert sent["preconditions"] == {"uid": "u1"}
    assert (sent["propagationPolicy"], sent["gracePeriodSeconds"]) == ("Foreground", 0)
    await api.delete(Lamp, "a")
    assert transport.last.body == b""
    with pytest.raises(TypeError, match="a kind and a name"):
        await api.delete(Lamp)


async def test_missing_ok_ignores_a_missing_object() -> None:
    api, _ = client(refusal(404, "NotFound"))
    await api.delete(Lamp, "a", missing_ok=True)
    with pytest.raises(NotFound, match="delete Lamp shop/a"):
        await api.delete(Lamp, "a")


async def test_a_collection_is_deleted_in_one_namespace() -> None:
    api, transport = client()
    await api.delete_collection(Lamp, namespace="shop", labels="x=y")
    assert (transport.last.method, transport.last.query) == ("DELETE", (("labelSelector", "x=y"),))
    with pytest.raises(ValueError, match="the kind is namespaced"):
        await api.delete_collection(Lamp)


async def test_scale_is_read_and_written_by_its_subresource() -> None:
    api, transport = client(ok({"spec": {"replicas": 3}}))
    assert await api.get_scale(Lamp, "a") == 3
    assert await api.scale(Lamp, "a", 3) == 3
    assert transport.sent() == {"spec": {"replicas": 3}}


async def test_an_eviction_that_a_budget_forbids_is_not_retried() -> None:
    api, transport = client(refusal(429, "TooManyRequests", "Cannot evict pod"))
    with pytest.raises(TooManyRequests):
        await api.evict("p", grace_period=5)
    assert len(transport.requests) == 1
    assert transport.sent()["deleteOptions"] == {"gracePeriodSeconds": 5}


async def test_a_token_does_not_show_itself() -> None:
    api, transport = client(ok({"status": {"token": "s3cret", "expirationTimestamp": "2026-01-01T00:00:00Z"}}))
    issued = await api.create_token("robot", audiences=("x",))
    assert issued.token == "s3cret"
    assert "s3cret" not in repr(issued)
    assert transport.last.path == "/api/v1/namespaces/shop/serviceaccounts/robot/token"


async def test_a_log_is_read_line_by_line_whatever_its_chunks() -> None:
    class Cut(BufferedResponse):
        async def chunks(self) -> Any:
            for chunk in (b"on", b"e\ntwo\nth", b"ree"):
                yield chunk

    api, transport = client(Cut(200))
    assert [line async for line in api.logs("p", container="c", tail_lines=9)] == [b"one", b"two", b"three"]
    assert transport.last.query == (("container", "c"), ("tailLines", "9"))


async def test_wait_for_watches_until_the_condition_holds() -> None:
    def state(version: str, watts: int) -> dict[str, Any]:
        return {"metadata": {"name": "a", "namespace": "shop", "resourceVersion": version}, "spec": {"watts": watts}}

    changes = [{"type": "MODIFIED", "object": state("2", 5)}, {"type": "MODIFIED", "object": state("3", 9)}]
    stream = b"".join(json.dumps(change).encode() + b"\n" for change in changes)
    listing = {"metadata": {"resourceVersion": "1"}, "items": [state("1", 1)]}
    api, transport = client(ok(listing), BufferedResponse(200, stream))
    found = await api.wait_for(Lamp, "a", field_equals(".spec.watts", 9))
    assert found is not None
    assert found.resource_version == "3"
    assert ("resourceVersion", "1") in transport.last.query


async def test_wait_for_survives_the_end_of_a_stream_and_reports_the_last_state_on_timeout() -> None:
    def answer(request: Request) -> BufferedResponse:
        if request.stream:
            return BufferedResponse(200, b"garbage\n")
        return ok({"metadata": {"resourceVersion": "1"}, "items": [WIRE]})

    api, transport = client(answer)
    with pytest.raises(
        WaitTimeout, match=r"wait until Lamp shop/a is deleted: not within 9 s \(last seen at version 7"
    ):
        await api.wait_for(Lamp, "a", is_deleted(), timeout=9)
    assert 9 <= len(transport.requests) / 2 <= 10


@pytest.mark.parametrize(
    ("claim", "document", "holds"),
    [
        (exists(), {}, True),
        (exists(), None, False),
        (is_deleted(), None, True),
        (has_condition("Ready"), {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, True),
        (has_condition("Ready"), {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, False),
        (has_condition("Ready"), {"status": {}}, False),
        (
            has_condition("Ready"),
            {
                "metadata": {"generation": 2},
                "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
            },
            False,
        ),
        (field_equals(".a.b", 1), {"a": {"b": 1}}, True),
        (field_equals(".a.b", 1), {"a": 1}, False),
        (is_deployment_complete(), None, False),
        (
            is_deployment_complete(),
            {
                "metadata": {"generation": 2},
                "spec": {"replicas": 2},
                "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
            },
            True,
        ),
        (
            is_deployment_complete(),
            {
                "metadata": {"generation": 2},
                "spec": {"replicas": 2},
                "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
            },
            False,
        ),
    ],
)
def test_wait_conditions(claim: Any, document: dict[str, Any] | None, holds: bool) -> None:
    assert claim(None if document is None else Unstructured(document)) is holds


async def test_a_conflict_names_verb_kind_and_key() -> None:
    api, _ = client(refusal(409, "Conflict", "the object has been modified"))
    thing = lamp()
    thing.spec.watts = 1
    with pytest.raises(Conflict, match="update Lamp shop/a: the object has been modified"):
        await api.update(thing)


async def test_what_is_no_object_is_refused() -> None:
    api, _ = client()
    with pytest.raises(TypeError, match=r"wrap a dict as Unstructured"):
        await api.create({"kind": "Lamp"})  # type: ignore[type-var]
    with pytest.raises(ValueError, match="needs 'apiVersion' and 'kind'"):
        await api.create(Unstructured())
    assert encode(Unstructured()) == b"{}"


async def test_a_delete_of_an_object_takes_no_other_name() -> None:
    api, transport = client()
    with pytest.raises(TypeError, match="an object has a name and namespace already"):
        await api.delete(lamp(), "b")
    with pytest.raises(TypeError, match="leave out name= and namespace="):
        await api.delete(lamp(), namespace="other")
    assert transport.requests == []


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("", ValueError, "the name is empty"),
        (5, TypeError, "the name must be a str, got 5"),
        ("shop/a", ValueError, "write Key.parse('shop/a'), or pass the namespace separately"),
    ],
)
async def test_a_name_that_no_object_can_have_raises_without_a_request(
    name: Any, error: type[Exception], says: str
) -> None:
    api, transport = client()
    with pytest.raises(error, match=re.escape(says)):
        await api.get(Lamp, name)
    with pytest.raises(error, match=re.escape(says)):
        await api.wait_for(Lamp, name, exists())
    assert transport.requests == []


@pytest.mark.parametrize("wrong", [0, -1, "3", None, float("nan")])
def test_a_timeout_that_leaves_no_time_is_refused(wrong: Any) -> None:
    api, _ = client()
    with pytest.raises(ValueError, match="timeout: expected a number of seconds above 0"):
        api.using(timeout=wrong)


def test_impersonate_does_not_accept_a_plain_name() -> None:
    api, _ = client()
    with pytest.raises(TypeError, match=r"impersonate: expected Impersonation\(user\), got 'alice'"):
        api.using(impersonate="alice")


async def test_selectors_are_texts_dicts_or_selectors() -> None:
    api, transport = client(ok({"items": []}))
    for labels in ("a=b,c=d", {"c": "d", "a": "b"}, LabelSelector.parse("a=b,c=d")):
        await api.list(Lamp, labels=labels, fields={"metadata.name": "x"})
        assert list(transport.last.query) == [("labelSelector", "a=b,c=d"), ("fieldSelector", "metadata.name=x")]


async def test_a_list_that_is_refused_names_the_namespace() -> None:
    api, _ = client(refusal(403, "Forbidden", "no"))
    with pytest.raises(Forbidden, match=r"^list Lamp shop: no"):
        await api.list(Lamp, namespace="shop")
