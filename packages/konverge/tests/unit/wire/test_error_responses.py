from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.errors import (
    AlreadyExists,
    ApiError,
    ApplyConflict,
    Cause,
    Conflict,
    Expired,
    FieldConflict,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from konverge.wire import FrameReader, error_from_frame, error_from_response


def status(code: int, message: str, *, reason: str = "", **details: Any) -> bytes:
    document = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    return json.dumps({**document, "reason": reason, "details": details, "code": code}).encode()


def refused(code: int, body: bytes = b"", headers: dict[str, str] | None = None) -> ApiError:
    error = error_from_response(code, headers or {}, body, verb="get", kind="Deployment", key="shop/web")
    assert isinstance(error, ApiError)
    assert error.status == code
    return error


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", Unauthorized),
        (402, "", ApiError),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", Invalid),
        (406, "NotAcceptable", Invalid),
        (408, "", ServerError),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (409, "", Conflict),
        (410, "Expired", Expired),
        (410, "Gone", Expired),
        (413, "RequestEntityTooLarge", Invalid),
        (415, "UnsupportedMediaType", Invalid),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (504, "Timeout", ServerError),
        (599, "", ServerError),
        (999, "", ServerError),
    ],
)
def test_the_code_decides_the_class(code: int, reason: str, expected: type[ApiError]) -> None:
    error = refused(code, status(code, "because", reason=reason))
    assert type(error) is expected
    assert error.reason == reason
    assert str(error).startswith("get Deployment shop/web: because")


def test_the_error_says_what_was_asked_in_the_callers_words() -> None:
    error = refused(404, status(404, 'deployments.apps "web" not found', reason="NotFound", name="web"))
    assert str(error) == 'get Deployment shop/web: deployments.apps "web" not found'
    assert (error.verb, error.kind, error.key) == ("get", "Deployment", "shop/web")


@pytest.mark.parametrize(
    "body",
    [b"404 page not found\n", status(404, "the server could not find the requested resource", reason="NotFound")],
)
def test_a_resource_that_is_not_served_is_told_from_an_object_that_is_missing(body: bytes) -> None:
    assert "does not serve this resource (is its CRD installed" in str(refused(404, body))


def test_a_refusal_names_each_field_by_its_wire_path() -> None:
    causes = [
        {"reason": "FieldValueInvalid", "message": "Invalid value: -1: must be at least 0", "field": "spec.replicas"},
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"},
    ]
    error = refused(422, status(422, 'Deployment.apps "web" is invalid: [...]', reason="Invalid", causes=causes))
    assert str(error) == (
        "get Deployment shop/web: Invalid value: -1: must be at least 0, at .spec.replicas; "
        "Required value, at .spec.selector"
    )
    assert error.causes[1] == Cause("spec.selector", "FieldValueRequired", "Required value")


def test_of_very_many_fields_the_first_are_named() -> None:
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": f"f{n}"} for n in range(9)]
    error = refused(422, status(422, "is invalid", causes=causes))
    assert str(error).endswith("at .f4; and 4 more")
    assert len(error.causes) == 9


def conflict(manager: str, path: str) -> dict[str, str]:
    return {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}


def apply_conflict(*causes: dict[str, str]) -> ApplyConflict:
    body = status(409, "Apply failed with 1 conflict: ...", reason="Conflict", causes=causes)
    error = error_from_response(409, {}, body, verb="apply", kind="Deployment", key="shop/web")
    assert isinstance(error, ApplyConflict)
    return error


def test_an_apply_conflict_names_owner_and_path() -> None:
    error = apply_conflict(conflict('"hpa-controller"', ".spec.replicas"))
    assert str(error) == (
        "apply Deployment shop/web: .spec.replicas is owned by 'hpa-controller' (force=True takes it)"
    )
    assert error.conflicts == (FieldConflict("hpa-controller", ".spec.replicas"),)


def test_several_conflicts_are_all_named() -> None:
    error = apply_conflict(
        conflict('"kubectl-edit" using apps/v1 at 2026-11-15T01:33:52Z', ".spec.replicas"),
        conflict('"m\\"1" with subresource "scale" using apps/v1', '.spec.containers[name="web"].image'),
        conflict("something else", ".metadata.labels.a"),
    )
    assert error.conflicts == (
        FieldConflict("kubectl-edit", ".spec.replicas"),
        FieldConflict('m"1', '.spec.containers[name="web"].image'),
        FieldConflict("conflict with something else", ".metadata.labels.a"),
    )
    assert str(error).endswith(".metadata.labels.a by 'conflict with something else' (force=True takes them)")


def test_a_manager_with_escapes_that_json_does_not_know_is_named_as_it_came() -> None:
    assert apply_conflict(conflict('"m\\x01"', ".a")).conflicts[0].manager == "m\\x01"


def test_of_very_many_conflicts_the_first_are_named() -> None:
    error = apply_conflict(*(conflict('"m"', f".f{n}") for n in range(8)))
    assert ".f4 by 'm' and 3 more (force=True takes them)" in str(error)
    assert len(error.conflicts) == 8


@pytest.mark.parametrize(
    ("message", "needs", "says"),
    [
        (
            'configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" '
            'in the namespace "default"',
            "list on configmaps",
            'User "alice" may not (needs list on configmaps in namespace default)',
        ),
        (
            'deployments.apps "x" is forbidden: User "bob" cannot get resource "deployments/status" in API group '
            '"apps" at the cluster scope',
            "get on deployments.apps/status",
            'User "bob" may not (needs get on deployments.apps/status)',
        ),
        (
            'pods is forbidden: User "a\\"b" cannot watch resource "pods" in API group "" at the cluster scope: '
            'RBAC: clusterrole.rbac.authorization.k8s.io "x" not found',
            "watch on pods",
            'User "a\\"b" may not: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found (needs watch on pods)',
        ),
        (
            'forbidden: User "system:anonymous" cannot get path "/metrics"',
            "get on path /metrics",
            'User "system:anonymous" may not (needs get on path /metrics)',
        ),
        (
            'configmaps "x" is forbidden: unable to create new content in namespace t1 because it is being terminated',
            "",
            "because it is being terminated",
        ),
    ],
)
def test_a_missing_permission_is_named(message: str, needs: str, says: str) -> None:
    error = refused(403, status(403, message, reason="Forbidden"))
    assert isinstance(error, Forbidden)
    assert error.needs == needs
    assert str(error).endswith(says)


@pytest.mark.parametrize("code", [429, 503, 500, 504])
def test_the_header_says_when_to_come_back_and_else_the_body(code: int) -> None:
    body = status(code, "busy", retryAfterSeconds=7)
    assert retry_after_of(refused(code, body, {"retry-after": "3"})) == 3
    assert retry_after_of(refused(code, body)) == 7
    assert retry_after_of(refused(code, status(code, "busy"))) is None


def retry_after_of(error: ApiError) -> float | None:
    assert isinstance(error, TooManyRequests | ServerError)
    return error.retry_after


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "HTTP 503 Service Unavailable, with an empty body"),
        (b" \n", "HTTP 503 Service Unavailable, with an empty body"),
        (b"upstream\r\n connect error\n", "upstream connect error"),
        (b"<html><head><title>503  Busy</title>...", "an HTML page titled '503 Busy' instead of a Status"),
        (b"<p>hello", "an HTML page instead of a Status (is there a proxy in between?)"),
        (b'{"kind":"Status","message":', "27 bytes of JSON that are not a Status"),
        (b'{"error":"x"}', "13 bytes of JSON that are not a Status"),
        (b"\xff\xfe\x00\x01", "4 bytes that are not text"),
    ],
)
def test_a_body_that_is_not_a_status_is_described(body: bytes, says: str) -> None:
    error = refused(503, body)
    assert type(error) is ServerError
    assert says in str(error)


def test_a_huge_message_is_cut() -> None:
    assert len(str(refused(400, status(400, "x" * 100_000)))) < 5_000
    assert len(str(refused(500, b"y" * 10_000_000))) < 5_000
    assert len(str(refused(500, status(500, "x") + b" " * 10_000_000))) < 5_000


REPEATED = r'Invalid value: "{\"data\":{\"pw\":\"aHVudGVyMg==\",\"x\":5}}": json: cannot unmarshal number'


@pytest.mark.parametrize(
    ("code", "message", "causes", "says"),
    [
        (
            422,
            f' "" is invalid: patch: {REPEATED}',
            [{"field": "patch", "message": REPEATED}],
            "cannot unmarshal number",
        ),
        (422, f' "" is invalid: patch: {REPEATED}', [], "patch: Invalid value: json: cannot unmarshal number"),
        (500, "typed patch: .data: expected map, got &{[aHVudGVyMg==\naHVudGVyMg==]}", [], ".data: expected map"),
    ],
)
def test_what_the_server_repeats_of_an_object_is_left_out(
    code: int, message: str, causes: list[dict[str, str]], says: str
) -> None:
    error = refused(code, status(code, message, causes=causes))
    assert says in str(error)
    assert "aHVudGVyMg" not in str(error) + repr(error.causes)


def test_a_wrong_value_is_still_shown() -> None:
    cause = {"field": "type", "message": 'Invalid value: "other": field is immutable'}
    error = refused(422, status(422, "", causes=[cause]))
    assert str(error).endswith('Invalid value: "other": field is immutable, at .type')


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in str(refused(400, status(400, "\x1b[31mred")))
    assert "\x1b" not in str(refused(400, b"\x1b[31mred"))


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("https://login.example.com/start?token=hunter2", "HTTP 302 to https://login.example.com (is the server URL"),
        ("https://user:hunter2@host/x", "HTTP 302 to https://host (is"),
        ("/elsewhere?a=hunter2", "HTTP 302 to /elsewhere (is"),
        ("", "HTTP 302 (is the server URL"),
        ("http://[bad", "HTTP 302 (is the server URL"),
    ],
)
def test_a_redirect_is_not_followed_and_its_host_is_named_without_secrets(location: str, says: str) -> None:
    error = error_from_response(302, {"location": location}, b"", verb="list", kind="Pod")
    assert isinstance(error, TransportError)
    assert f"list Pod: redirects are not followed: {says}" in str(error)
    assert "hunter2" not in str(error)


def test_a_status_that_is_no_answer_is_no_refusal_either() -> None:
    assert isinstance(error_from_response(101, {}, b""), TransportError)


def frame_error(object_: bytes) -> ApiError:
    (frame,) = FrameReader().feed(b'{"type":"ERROR","object":' + object_ + b"}\n")
    return error_from_frame(frame, verb="watch", kind="Pod")


@pytest.mark.parametrize(
    ("object_", "expected", "code"),
    [
        (status(410, "too old resource version: 1 (2)", reason="Expired"), Expired, 410),
        (b'{"kind":"Status","reason":"Gone","message":"gone"}', Expired, 410),
        (status(429, "slow down", retryAfterSeconds=2), TooManyRequests, 429),
        (status(403, "no", reason="Forbidden"), Forbidden, 403),
        (status(500, "etcd is away"), ServerError, 500),
        (b'{"kind":"Status","code":"x"}', ServerError, 500),
        (b"{}", ServerError, 500),
        (b"null", ServerError, 500),
    ],
)
def test_an_error_in_a_watch_is_the_same_error(object_: bytes, expected: type[ApiError], code: int) -> None:
    error = frame_error(object_)
    assert type(error) is expected
    assert error.status == code
    assert str(error).startswith("watch Pod: ")


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
strange = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.just("Status") | values,
        "message": values,
        "reason": values,
        "code": values,
        "details": st.fixed_dictionaries({}, optional={"causes": st.lists(values), "retryAfterSeconds": values})
        | values,
    },
)


@given(st.integers(100, 999), st.binary() | strange.map(lambda d: json.dumps(d).encode()), st.text(), st.text())
def test_there_is_an_error_for_every_response(code: int, body: bytes, after: str, location: str) -> None:
    error = error_from_response(
        code, {"retry-after": after, "location": location}, body, verb="get", kind="Pod", key="a/b"
    )
    assert str(error).startswith("get Pod a/b: ")
    assert isinstance(error, ApiError) == (code >= 400)
