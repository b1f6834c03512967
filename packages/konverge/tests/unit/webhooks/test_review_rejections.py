"""Invalid reviews: each gets a response that the API server can pass to the client."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.testing.virtual_time import run_in_virtual_time
from konverge.webhooks import Webhooks
from webhook_examples import (
    admission_review,
    call_webhook,
    check,
    conversion,
    conversion_review,
    review_response,
    webapp,
)

BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the body is empty"),
    "blank": (b"  \n", "the body is empty"),
    "no JSON": (b"{", "the review cannot be read"),
    "no UTF-8": (b'{"kind":"\xff"}', "the review cannot be read"),
    "a list": (b"[]", "the review cannot be read"),
    "null": (b"null", "the review cannot be read"),
    "too deep": (b"[" * 100_000, "the review cannot be read"),
    "nothing": (b"{}", "got an object without apiVersion and kind"),
    "no request": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "has no request"),
    "null request": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}', "has no request"),
    "text request": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":"x"}', "cannot be read"),
    "no uid": (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}', "cannot be read"),
    "another kind": (b'{"kind":"Pod","apiVersion":"v1"}', "expected admission.k8s.io/v1 AdmissionReview, got v1 Pod"),
    "a later version": (admission_review(webapp(), version="v2"), "got admission.k8s.io/v2 AdmissionReview"),
    "a conversion": (conversion_review(webapp(), to="v1"), "got apiextensions.k8s.io/v1 ConversionReview"),
    "no object": (admission_review(None), "the review has no object"),
    "an odd operation": (admission_review(webapp(), operation="CONNECT"), "the operation 'CONNECT' is not one of"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_body_that_is_not_a_review_is_a_failed_call_with_a_reason(name: str) -> None:
    body, text = BROKEN[name]

    answer = await call_webhook(check, body)

    assert answer.code == 400
    status = json.loads(answer.body)
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", 400)
    assert text in status["message"]


async def test_a_review_of_the_former_version_is_denied_in_that_version() -> None:
    answer = await call_webhook(check, admission_review(webapp(), version="v1beta1"))

    review = json.loads(answer.body)
    assert (answer.code, review["apiVersion"]) == (200, "admission.k8s.io/v1beta1")
    assert review["response"]["allowed"] is False
    text = "this webhook supports admission.k8s.io/v1 (write admissionReviewVersions: [v1])"
    assert review["response"]["status"]["message"] == text


async def test_a_conversion_of_the_former_version_fails_in_that_version() -> None:
    answer = await call_webhook(conversion, conversion_review(webapp(), to="v1beta1", version="v1beta1"))

    review = json.loads(answer.body)
    assert (answer.code, review["apiVersion"]) == (200, "apiextensions.k8s.io/v1beta1")
    assert review["response"]["result"]["status"] == "Failure"
    assert "supports apiextensions.k8s.io/v1" in review["response"]["result"]["message"]


async def test_nulls_where_the_server_writes_them_are_no_mistake() -> None:
    body = admission_review(webapp(), options=None, dryRun=None, subResource=None, requestKind=None, userInfo={})

    assert (await review_response(check, body))["allowed"]


async def test_a_path_without_a_webhook_is_not_found() -> None:
    answer = await Webhooks(check).handle("/nowhere", b"{}")

    assert answer.code == 404


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
@settings(max_examples=100)
def test_any_bytes_get_a_response(body: bytes) -> None:
    for hook in (check, conversion):
        answer = run_in_virtual_time(call_webhook(hook, body))
        assert answer.code == 400
        assert json.loads(answer.body)["kind"] == "Status"


@given(st.data())
@settings(max_examples=100)
def test_a_review_with_a_missing_or_invalid_field_gets_a_response(data: st.DataObject) -> None:
    body = json.loads(admission_review(webapp(), webapp(), operation="UPDATE"))
    odd: object = data.draw(st.sampled_from([None, 1, "x", [], {}, {"a": 1}]))
    body["request"][data.draw(st.sampled_from(sorted(body["request"])))] = odd

    answer = run_in_virtual_time(call_webhook(check, json.dumps(body).encode()))

    assert answer.code in (200, 400)
    assert json.loads(answer.body)["kind"] in ("AdmissionReview", "Status")
