"""What type checkers see of the public API: mypy reads this file (`make types`); running it only loads it."""

from __future__ import annotations

from typing import Annotated, Any, assert_type

from konverge import Client, CustomResource, Key, Kind, Meta, Spec, Status, Unstructured
from konverge.client import ObjectList, WatchEvent, exists
from konverge.k8s.apps.v1 import Deployment, DeploymentSpec
from konverge.k8s.core.v1 import Pod
from konverge.objects import decode


class WebAppSpec(Spec):
    image: str
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1


class WebAppStatus(Status):
    available_replicas: int = 0


class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="example.com", version="v1"):
    """A stateless web application."""


POD = Kind("", "v1", "Pod", "pods")


async def a_class_gives_typed_objects(client: Client) -> None:
    assert_type(await client.get(Deployment, "web"), Deployment)
    assert_type(await client.get(WebApp, Key("shop", "web")), WebApp)
    assert_type(await client.list(Pod), ObjectList[Pod])
    assert_type(await client.patch(Pod, "web", {}), Pod)
    assert_type(await client.wait_for(Pod, "web", exists()), Pod | None)
    async for page in client.pages(Pod):
        assert_type(page, ObjectList[Pod])
    async for event in client.watch(Pod):
        assert_type(event, WatchEvent[Pod])


async def a_kind_or_a_name_gives_untyped_ones(client: Client) -> None:
    assert_type(await client.get(POD, "web"), Unstructured)
    assert_type(await client.list("pods"), ObjectList[Unstructured])


async def a_write_gives_what_it_was_given(client: Client, web: Deployment, app: WebApp, thing: Unstructured) -> None:
    assert_type(await client.create(web), Deployment)
    assert_type(await client.apply(app), WebApp)
    assert_type(await client.update(thing), Unstructured)


def specs_and_statuses_need_no_none_checks(web: Deployment, app: WebApp) -> None:
    assert_type(web.spec, DeploymentSpec)
    assert_type(web.status.available_replicas, int | None)
    assert_type(app.spec.replicas, int)
    assert_type(app.status.available_replicas, int)
    assert_type(web.metadata.labels, dict[str, str])
    assert_type(decode(Pod, b"{}"), Pod)


def wrong_names_and_missing_arguments_are_found(web: Deployment) -> None:
    web.spec.replica = 3  # type: ignore[attr-defined]
    DeploymentSpec(replicas=3)  # type: ignore[call-arg]
    WebAppSpec(replicas=3)  # type: ignore[call-arg]


def test_this_file_is_read_by_mypy() -> None:
    public: list[Any] = [a_class_gives_typed_objects, wrong_names_and_missing_arguments_are_found]
    assert all(callable(each) for each in public)
