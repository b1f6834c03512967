"""Admission functions: their arguments, and how their results become responses."""

from __future__ import annotations

import asyncio
import copy
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.k8s.core.v1 import ConfigMap
from konverge.testing.virtual_time import run_in_virtual_time
from konverge.webhooks import AdmissionRequest, Deny, MutatingWebhook, ValidatingWebhook, validating
from konverge_cluster.patches import apply_json_patch
from webhook_examples import (
    GROUP,
    Json,
    WebApp,
    admission_review,
    call_webhook,
    check,
    fill_in,
    patch_in,
    review_response,
    webapp,
)


async def test_what_is_fine_is_allowed() -> None:
    assert await review_response(check, admission_review(webapp())) == {"uid": "review-1", "allowed": True}


async def test_a_denial_tells_message_path_and_code() -> None:
    response = await review_response(check, admission_review(webapp(image="nginx")))

    assert not response["allowed"]
    assert response["status"]["message"] == "an image needs a tag, at .spec.image"
    assert response["status"]["code"] == 422
    assert response["status"]["reason"] == "Invalid"
    cause = {"reason": "FieldValueInvalid", "message": "an image needs a tag", "field": "spec.image"}
    assert response["status"]["details"] == {"group": GROUP, "kind": "WebApp", "name": "web", "causes": [cause]}


async def test_all_denials_are_reported_at_once() -> None:
    response = await review_response(check, admission_review(webapp(image="nginx", replicas=101)))

    result = "an image needs a tag, at .spec.image; that is too many, at .spec.replicas"
    assert response["status"]["message"] == result
    assert response["warnings"] == ["that many replicas are expensive"]


async def test_an_update_brings_the_old_object() -> None:
    body = admission_review(webapp(image="caddy:2"), webapp(), operation="UPDATE")

    assert (await review_response(check, body))["status"][
        "message"
    ] == "the repository cannot be changed, at .spec.image"


async def test_a_delete_hands_over_the_object_that_goes() -> None:
    protected = webapp()
    protected["metadata"]["annotations"] = {"keep": "true"}

    response = await review_response(check, admission_review(None, protected, operation="DELETE"))

    assert response["status"]["message"] == "it is protected"
    assert response["status"]["code"] == 409
    assert (await review_response(check, admission_review(None, webapp(), operation="DELETE")))["allowed"]


async def test_the_request_has_user_and_operation() -> None:
    seen: list[AdmissionRequest] = []

    @validating(WebApp)
    async def note(_app: WebApp, _old: WebApp | None, request: AdmissionRequest) -> None:
        seen.append(request)

    old_kind = {"group": GROUP, "version": "v1beta1", "kind": "WebApp"}
    await review_response(note, admission_review(webapp(), dryRun=True, requestKind=old_kind, subResource="status"))

    [request] = seen
    assert (request.operation, str(request.key), request.uid) == ("CREATE", "shop/web", "review-1")
    assert (request.user.name, request.user.groups) == ("alice", ("devs",))
    assert request.dry_run
    assert (request.version, request.subresource) == ("v1beta1", "status")
    assert request.options["kind"] == "CreateOptions"


RESULTS: dict[str, tuple[Any, bool, list[str]]] = {
    "nothing": (None, True, []),
    "a warning": ("careful", True, ["careful"]),
    "warnings": (["careful", "really"], True, ["careful", "really"]),
    "an empty list": ([], True, []),
    "a denial": (Deny("no"), False, []),
    "a denial among warnings": (("careful", Deny("no")), False, ["careful"]),
}


@pytest.mark.parametrize("case", RESULTS)
async def test_a_function_may_return_denials_and_warnings(case: str) -> None:
    result, allowed, warnings = RESULTS[case]

    async def return_result(*_: Any) -> Any:
        return result

    for function in (lambda *_: result, return_result):
        response = await review_response(ValidatingWebhook(WebApp, function), admission_review(webapp()))
        assert response["allowed"] is allowed
        assert response.get("warnings", []) == warnings


@pytest.mark.parametrize("kind", [ValidatingWebhook, MutatingWebhook])
async def test_a_denial_may_be_raised(kind: Callable[..., Any]) -> None:
    def refuse(*_: Any) -> None:
        raise Deny("not today")

    response = await review_response(kind(WebApp, refuse), admission_review(webapp()))

    assert response["status"]["message"] == "not today"
    assert response["status"]["code"] == 403


def leave() -> None:
    sys.exit("goodbye, password=hunter2")


def stop() -> None:
    next(iter(()))


def wrong() -> None:
    raise ValueError("password=hunter2")


@pytest.mark.parametrize("kind", [ValidatingWebhook, MutatingWebhook])
@pytest.mark.parametrize("broken", [leave, stop, wrong])
@pytest.mark.parametrize("sync", [True, False])
async def test_an_exception_denies_without_details_of_the_error(
    kind: Callable[..., Any], broken: Callable[[], None], sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        broken()

    async def fail_later(*_: Any) -> None:
        await asyncio.sleep(0)
        broken()

    with caplog.at_level(logging.ERROR, "konverge.webhooks"):
        response = await review_response(kind(WebApp, fail if sync else fail_later), admission_review(webapp()))

    assert not response["allowed"]
    assert response["status"]["code"] == 500
    text = "the webhook failed; see the log of the operator for the request review-1"
    assert response["status"]["message"] == text
    assert len([record for record in caplog.records if record.exc_info]) == 1


@pytest.mark.parametrize("result", [5, [5], object()])
async def test_nonsense_from_a_function_is_an_error_of_the_webhook(result: Any) -> None:
    for kind in (ValidatingWebhook, MutatingWebhook):
        response = await review_response(kind(WebApp, lambda *_: result), admission_review(webapp()))
        assert response["status"]["code"] == 500


async def test_a_dry_run_does_not_reach_a_function_with_side_effects() -> None:
    called: list[bool] = []

    def act(_app: WebApp, _old: WebApp | None, request: AdmissionRequest) -> Deny:
        called.append(request.dry_run)
        return Deny("no")

    hook = ValidatingWebhook(WebApp, act, side_effects=True)

    assert (await review_response(hook, admission_review(webapp(), dryRun=True)))["allowed"]
    assert not (await review_response(hook, admission_review(webapp())))["allowed"]
    assert called == [False]


async def test_a_dry_run_reaches_a_function_without_side_effects() -> None:
    assert not (await review_response(check, admission_review(webapp(image="nginx"), dryRun=True)))["allowed"]


async def test_an_object_that_does_not_fit_its_class_is_denied_with_the_path() -> None:
    response = await review_response(check, admission_review(webapp(replicas="many")))

    assert not response["allowed"]
    assert response["status"]["code"] == 422
    assert response["status"]["message"] == "WebApp shop/web: expected int, got str, at .spec.replicas of WebApp"


async def test_an_edit_becomes_a_patch_of_just_the_edit() -> None:
    response = await review_response(fill_in, admission_review(webapp(replicas=0)))

    assert patch_in(response) == [
        {"op": "add", "path": "/metadata/labels", "value": {"app": "web"}},
        {"op": "replace", "path": "/spec/replicas", "value": 1},
    ]
    assert response["warnings"] == ["replicas were raised to 1"]


async def test_no_edit_is_no_patch() -> None:
    labelled = webapp()
    labelled["metadata"]["labels"] = {"app": "web"}

    assert await review_response(fill_in, admission_review(labelled)) == {"uid": "review-1", "allowed": True}


async def test_a_copy_may_be_edited_and_returned() -> None:
    def other_image(app: WebApp, *_: Any) -> WebApp:
        twin = copy.deepcopy(app)
        twin.spec.image = "caddy:2"
        return twin

    response = await review_response(MutatingWebhook(WebApp, other_image), admission_review(webapp()))

    assert patch_in(response) == [{"op": "replace", "path": "/spec/image", "value": "caddy:2"}]


async def test_an_object_without_the_source_is_rejected_since_it_would_lose_fields() -> None:
    def anew(app: WebApp, *_: Any) -> WebApp:
        return WebApp(metadata=app.metadata, spec=app.spec)

    def backwards(_app: WebApp, old: WebApp | None, _request: AdmissionRequest) -> WebApp | None:
        return old

    body = admission_review(webapp(), webapp(replicas=2), operation="UPDATE")
    for function in (anew, backwards):
        response = await review_response(MutatingWebhook(WebApp, function), body)
        assert response["status"]["code"] == 500


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz/", min_size=1, max_size=2), inner),
    max_leaves=6,
)
PORTS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd"), "number": st.integers(1, 9)}, optional={"unknown": JUNK, "other": JUNK}
    ),
    unique_by=lambda port: port["name"],
    max_size=4,
)


@given(ports=PORTS, junk=st.dictionaries(st.text("uvw", min_size=1, max_size=3), JUNK, max_size=3), image=st.booleans())
@settings(max_examples=60)
def test_whatever_the_class_does_not_know_survives_an_edit(ports: list[Json], junk: Json, image: bool) -> None:
    sent = webapp(ports=ports, **junk)

    def edit(app: WebApp, *_: Any) -> None:
        if image:
            app.spec.image = "caddy:2"
        for port in app.spec.ports:
            port.number += 1

    response = run_in_virtual_time(review_response(MutatingWebhook(WebApp, edit), admission_review(sent)))

    stored = apply_json_patch(copy.deepcopy(sent), patch_in(response))
    expected = copy.deepcopy(sent)
    if image:
        expected["spec"]["image"] = "caddy:2"
    for port in expected["spec"]["ports"]:
        port["number"] += 1
    assert stored == expected


async def test_a_review_of_another_kind_is_a_failed_call() -> None:
    hook = ValidatingWebhook(ConfigMap, lambda *_: None)

    answer = await call_webhook(hook, admission_review(webapp()))

    assert answer.code == 400
    text = "the webhook validate.v1.configmaps.core is for ConfigMap.v1, not for WebApp.hooks.example.com/v1"
    assert text.encode() in answer.body


def test_names_and_paths_are_stable() -> None:
    assert (check.path, check.full_name) == (
        "/validate/hooks.example.com/v1/webapps",
        "validate.v1.webapps.hooks.example.com",
    )
    named = MutatingWebhook(ConfigMap, lambda *_: None, name="labels")
    assert (named.path, named.full_name) == ("/mutate/core/v1/configmaps/labels", "mutate-labels.v1.configmaps.core")


def test_a_hook_can_be_called_as_the_function_that_it_is() -> None:
    from konverge.objects import from_wire

    app = from_wire(WebApp, webapp(image="nginx"))

    assert [str(each) for each in check(app, None, AdmissionRequest())] == ["an image needs a tag, at .spec.image"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"operations": ()}, "operations of ValidatingWebhook must be a tuple of"),
        ({"operations": "CREATE"}, "operations of ValidatingWebhook must be a tuple of"),
        ({"operations": ("CONNECT",)}, "operations of ValidatingWebhook must be a tuple of"),
        ({"subresources": ("scale",)}, "subresources of ValidatingWebhook must be a tuple of"),
        ({"timeout": 31}, "1 to 30 whole seconds"),
        ({"timeout": 0.5}, "1 to 30 whole seconds"),
        ({"failure_policy": "Maybe"}, "'Fail' or 'Ignore'"),
        ({"name": "Not A Name"}, "not a valid webhook name"),
    ],
)
def test_options_that_the_server_would_reject_are_rejected(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ValidatingWebhook(WebApp, lambda *_: None, **options)


def test_a_mutating_webhook_is_not_called_for_deletes() -> None:
    with pytest.raises(ValueError, match="operations of MutatingWebhook must be a tuple of 'CREATE', 'UPDATE'"):
        MutatingWebhook(WebApp, lambda *_: None, operations=("DELETE",))


@pytest.mark.parametrize("bad", [{"message": ""}, {"message": "x", "path": "spec"}, {"message": "x", "code": 200}])
def test_an_invalid_denial_is_rejected(bad: Any) -> None:
    with pytest.raises(ValueError):
        Deny(**bad)
