"""Conversion: what is copied, what may change, and how failures are reported."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge import CustomResource
from konverge.k8s.core.v1 import ConfigMap
from konverge.objects import ObjectMeta, encode
from konverge.webhooks import ConversionError, ConversionWebhook, Converter, round_trip_changes
from webhook_examples import (
    GROUP,
    SCALING,
    Json,
    OldSpec,
    OldWebApp,
    Port,
    Scaling,
    WebApp,
    WebAppSpec,
    WebAppStatus,
    conversion,
    conversion_review,
    down,
    review_response,
    up,
    webapp,
)

V1, V1BETA1 = f"{GROUP}/v1", f"{GROUP}/v1beta1"


def converted(document: Json, to: str = V1BETA1, webhook: ConversionWebhook = conversion) -> Json:
    return webhook.convert(encode(document), to)


def old_webapp(**spec: Any) -> Json:
    return {**webapp(), "apiVersion": V1BETA1, "spec": {"repository": "nginx", "tag": "1.25", **spec}}


async def test_a_review_returns_the_objects_in_order() -> None:
    objects = [webapp(replicas=number) for number in range(5)]

    response = await review_response(conversion, conversion_review(*objects, to="v1beta1"))

    assert response["result"] == {"status": "Success"}
    assert [each["apiVersion"] for each in response["convertedObjects"]] == [V1BETA1] * 5
    assert [each["spec"]["size"] for each in response["convertedObjects"]] == list(range(5))
    assert response["convertedObjects"][0]["spec"]["repository"] == "nginx"


async def test_no_objects_are_no_problem() -> None:
    response = await review_response(conversion, conversion_review(to="v1"))

    assert (response["result"], response["convertedObjects"]) == ({"status": "Success"}, [])


async def test_an_object_that_is_in_the_version_already_stays_as_it_is() -> None:
    response = await review_response(conversion, conversion_review(webapp(), to="v1"))

    assert response["convertedObjects"] == [webapp()]


def test_metadata_stays_but_for_labels_and_annotations() -> None:
    document = webapp(scaling={"least": 2, "most": 5})
    document["metadata"] |= {"generation": 7, "labels": {"a": "b"}, "annotations": {"mine": "x"}, "later": [1]}

    result = converted(document)

    notes = {"mine": "x", f"{GROUP}/scaling": '{"least":2,"most":5}'}
    assert result["metadata"] == {**document["metadata"], "annotations": notes}


def test_fields_that_no_class_knows_are_carried_over() -> None:
    document = webapp(ports=[{"name": "http", "number": 80, "later": True}, {"name": "admin", "number": 81}])
    document["later"] = {"x": None}
    document["status"] = {"availableReplicas": 2, "later": 3}

    result = converted(document)

    assert result["later"] == {"x": None}
    assert result["spec"]["later"] == {"a": [1, None]}
    assert result["spec"]["ports"] == document["spec"]["ports"]
    assert result["status"] == document["status"]
    assert converted(result, V1) == document | {"spec": {**document["spec"], "replicas": 1}}


def test_an_unknown_field_does_not_take_the_place_of_a_known_one() -> None:
    result = converted(old_webapp(image="mine", replicas="odd"), V1)

    assert (result["spec"]["image"], result["spec"]["replicas"]) == ("nginx:1.25", 1)


def version(name: str) -> Any:
    class Third(
        CustomResource[OldSpec, WebAppStatus], group=GROUP, version=name, kind="WebApp", plural="webapps", storage=False
    ):
        """Another one."""

    return Third


def test_two_spokes_meet_at_the_hub() -> None:
    third = version("v1alpha1")
    there: Converter[Any, WebApp] = Converter(
        third, WebApp, up=lambda old: up(old), down=lambda new: third(spec=down(new).spec)
    )
    webhook = ConversionWebhook(WebApp, Converter(OldWebApp, WebApp, up, down), there)

    result = converted(old_webapp(size=4), f"{GROUP}/v1alpha1", webhook)

    assert result["apiVersion"] == f"{GROUP}/v1alpha1"
    assert result["spec"]["size"] == 4
    assert result["metadata"] == old_webapp()["metadata"]


def renaming(new: WebApp) -> OldWebApp:
    return OldWebApp(metadata=ObjectMeta(name="other"), spec=OldSpec(repository=new.spec.image))


def rejecting(_: WebApp) -> OldWebApp:
    raise ConversionError("it cannot be said in v1beta1")


def failing(_: WebApp) -> OldWebApp:
    raise KeyError("password=hunter2")


def nothing(_: WebApp) -> Any:
    return None


def unchanged(new: WebApp) -> Any:
    return new


FAILURES: dict[str, tuple[Callable[[WebApp], OldWebApp], str]] = {
    "identity": (renaming, "WebApp shop/web: the converter changed .metadata.name"),
    "own words": (rejecting, "WebApp shop/web: it cannot be said in v1beta1"),
    "exception": (failing, "WebApp shop/web: the converter failed; see the log of the operator"),
    "the same version": (unchanged, "WebApp shop/web: the converter failed; see the log of the operator"),
    "no object": (nothing, "WebApp shop/web: the converter failed; see the log of the operator"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_one_object_that_fails_fails_the_review_and_is_named(name: str) -> None:
    function, text = FAILURES[name]

    def only_the_second(new: WebApp) -> OldWebApp:
        return function(new) if new.spec.replicas == 2 else down(new)

    webhook = ConversionWebhook(WebApp, Converter(OldWebApp, WebApp, up, only_the_second))

    response = await review_response(webhook, conversion_review(webapp(), webapp(replicas=2), to="v1beta1"))

    assert response["result"] == {"status": "Failure", "message": text}
    assert response["convertedObjects"] == []


@pytest.mark.parametrize(
    ("document", "to", "text"),
    [
        (webapp(replicas="many"), "v1beta1", "WebApp shop/web: expected int, got str, at .spec.replicas of WebApp"),
        (webapp(), "v9", f"WebApp has no version '{GROUP}/v9' (known versions: {V1}, {V1BETA1})"),
        ({**webapp(), "apiVersion": "x/v1"}, "v1", f"WebApp has no version 'x/v1' (known versions: {V1}, {V1BETA1})"),
    ],
)
async def test_an_object_that_cannot_be_converted_has_a_reason(document: Json, to: str, text: str) -> None:
    response = await review_response(conversion, conversion_review(document, to=to))

    assert response["result"]["message"] == text


@pytest.mark.parametrize("odd", ["text", 5, None, [], {"kind": "WebApp", "apiVersion": V1, "metadata": "x"}])
async def test_objects_that_are_none_fail_the_review(odd: Any) -> None:
    response = await review_response(conversion, conversion_review(odd, to="v1beta1"))

    assert response["result"]["status"] == "Failure"


NAMES = st.text("abc", min_size=1, max_size=3)
PORTS = st.lists(
    st.builds(Port, name=NAMES, number=st.integers(1, 65535)), max_size=3, unique_by=lambda port: port.name
)
METADATA = st.builds(
    ObjectMeta, name=NAMES, labels=st.dictionaries(NAMES, NAMES), annotations=st.dictionaries(NAMES, NAMES)
)
APPS = st.builds(
    WebApp,
    metadata=METADATA,
    spec=st.builds(
        WebAppSpec,
        image=st.from_regex(r"[a-z]{1,5}(:[a-z0-9.]{1,5})?", fullmatch=True),
        replicas=st.integers(0, 100),
        ports=PORTS,
        scaling=st.none() | st.builds(Scaling, least=st.integers(1, 3), most=st.integers(3, 9)),
    ),
    status=st.builds(WebAppStatus, available_replicas=st.integers(0, 5)),
)
OLD_APPS = st.builds(
    OldWebApp,
    metadata=METADATA,
    spec=st.builds(
        OldSpec,
        repository=st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        tag=st.from_regex(r"[a-z0-9.]{0,5}", fullmatch=True),
        size=st.integers(0, 100),
        ports=PORTS,
    ),
)


@given(APPS | OLD_APPS)
@settings(max_examples=150)
def test_a_round_trip_loses_nothing(app: WebApp | OldWebApp) -> None:
    assert round_trip_changes(conversion, app) == []


def test_what_is_lost_is_named() -> None:
    def forgetful(new: WebApp) -> OldWebApp:
        result = down(new)
        result.metadata.annotations.clear()
        result.spec.size = 1
        return result

    webhook = ConversionWebhook(WebApp, Converter(OldWebApp, WebApp, up, forgetful))
    app = WebApp(metadata=ObjectMeta(name="web"), spec=WebAppSpec(image="a:b", replicas=3, scaling=Scaling()))

    lost = round_trip_changes(webhook, app)

    assert lost == [f".spec.scaling via {V1BETA1}", f".spec.replicas via {V1BETA1}"]


@pytest.mark.parametrize("text", ["", "{", '{"least":"x"}', "null", "[]"])
def test_an_invalid_annotation_does_not_fail_the_conversion(text: str) -> None:
    document = old_webapp()
    document["metadata"]["annotations"] = {f"{GROUP}/scaling": text}

    result = converted(document, V1)

    assert "scaling" not in result["spec"]
    assert "annotations" not in result["metadata"]


def test_putting_none_removes_the_annotation() -> None:
    app = OldWebApp(spec=OldSpec(repository="x"))
    SCALING.put(app, Scaling())
    SCALING.put(app, None)

    assert app.metadata.annotations == {}


def test_the_source_is_not_changed() -> None:
    document = webapp(scaling={"least": 2})
    before = copy.deepcopy(document)

    converted(document)

    assert document == before


def test_converters_of_another_kind_or_hub_are_rejected() -> None:
    good: Converter[Any, Any] = Converter(OldWebApp, WebApp, up, down)
    with pytest.raises(ValueError, match="two versions of one kind"):
        Converter(ConfigMap, WebApp, up, down)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two versions of one kind"):
        Converter(WebApp, WebApp, up, down)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there are two converters of"):
        ConversionWebhook(WebApp, good, good)
    with pytest.raises(ValueError, match="has the hub WebApp, not OldWebApp"):
        ConversionWebhook(OldWebApp, good)
    with pytest.raises(ValueError, match="needs a Converter"):
        ConversionWebhook(WebApp)


async def test_a_list_of_thousands_is_converted_in_one_review() -> None:
    objects = [webapp(replicas=number % 50) for number in range(2000)]

    response = await review_response(conversion, conversion_review(*objects, to="v1beta1"))

    assert len(response["convertedObjects"]) == 2000
    assert json.dumps(response["convertedObjects"][49]["spec"]["size"]) == "49"
