"""A kind in two versions with webhooks, and reviews of it as the API server sends them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from konverge import CustomResource, Spec, Status
from konverge.objects import encode, field
from konverge.webhooks import (
    AdmissionRequest,
    AdmissionWebhook,
    AnnotationValue,
    ConversionWebhook,
    Converter,
    Deny,
    WebhookResponse,
    Webhooks,
    mutating,
    validating,
)

Json = dict[str, Any]

GROUP = "hooks.example.com"


class Port(Spec):
    """A port."""

    name: str
    number: int


class Scaling(Spec):
    """A field that v1beta1 does not have."""

    least: int = 1
    most: int = 3


class WebAppSpec(Spec):
    """The desired state."""

    image: str
    replicas: int = 1
    ports: list[Port] = field(default_factory=list)
    scaling: Scaling | None = None


class WebAppStatus(Status):
    """The observed state."""

    available_replicas: int = 0


class WebApp(CustomResource[WebAppSpec, WebAppStatus], group=GROUP, version="v1"):
    """A web application."""


class OldSpec(Spec):
    """In v1beta1 the image has two fields, and replicas has another name."""

    repository: str
    tag: str = ""
    size: int = 1
    ports: list[Port] = field(default_factory=list)


class OldWebApp(
    CustomResource[OldSpec, WebAppStatus],
    group=GROUP,
    version="v1beta1",
    kind="WebApp",
    plural="webapps",
    storage=False,
):
    """A web application, in its first version."""


SCALING = AnnotationValue(f"{GROUP}/scaling", Scaling)


def up(old: OldWebApp) -> WebApp:
    spec = old.spec
    image = f"{spec.repository}:{spec.tag}" if spec.tag else spec.repository
    new_spec = WebAppSpec(image=image, replicas=spec.size, ports=spec.ports, scaling=SCALING.pop(old))
    return WebApp(spec=new_spec, status=old.status)


def down(new: WebApp) -> OldWebApp:
    repository, _, tag = new.spec.image.partition(":")
    spec = OldSpec(repository=repository, tag=tag, size=new.spec.replicas, ports=new.spec.ports)
    old = OldWebApp(spec=spec, status=new.status)
    SCALING.put(old, new.spec.scaling)
    return old


conversion = ConversionWebhook(WebApp, Converter(OldWebApp, WebApp, up, down))


@validating(WebApp, operations=("CREATE", "UPDATE", "DELETE"))
def check(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> Iterator[Deny | str]:
    """Deny invalid objects, and warn about unusual ones."""
    if request.operation == "DELETE":
        if app.metadata.annotations.get("keep") == "true":
            yield Deny("it is protected", code=409)
        return
    if ":" not in app.spec.image:
        yield Deny("an image needs a tag", path=".spec.image")
    if app.spec.replicas > 100:
        yield Deny("that is too many", path=".spec.replicas")
    if old is not None and old.spec.image.partition(":")[0] != app.spec.image.partition(":")[0]:
        yield Deny("the repository cannot be changed", path=".spec.image")
    if app.spec.replicas > 50:
        yield "that many replicas are expensive"


@mutating(WebApp)
def fill_in(app: WebApp, old: WebApp | None, request: AdmissionRequest) -> None:
    """Set a label and a default, with a warning."""
    app.metadata.labels.setdefault("app", app.name)
    if app.spec.replicas == 0:
        app.spec.replicas = 1
        request.warn("replicas were raised to 1")


def webapp(**spec: Any) -> Json:
    """Return a WebApp of v1 as the API server sends it, with fields that the class does not have."""
    metadata = {"name": "web", "namespace": "shop", "uid": "u-1", "managedFields": [{"manager": "kubectl"}]}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "WebApp",
        "metadata": metadata,
        "spec": {"image": "nginx:1.25", "later": {"a": [1, None]}, **spec},
    }


def admission_review(
    obj: Json | None, old: Json | None = None, *, operation: str = "CREATE", version: str = "v1", **request: Any
) -> bytes:
    """Return an AdmissionReview of a WebApp."""
    kind = {"group": GROUP, "version": "v1", "kind": "WebApp"}
    review = {
        "uid": "review-1",
        "kind": kind,
        "resource": {"group": GROUP, "version": "v1", "resource": "webapps"},
        "requestKind": kind,
        "name": "web",
        "namespace": "shop",
        "operation": operation,
        "userInfo": {"username": "alice", "groups": ["devs"]},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **request,
    }
    return encode({"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": review})


def conversion_review(*objects: Json, to: str, version: str = "v1") -> bytes:
    """Return a ConversionReview of WebApps to a version."""
    review = {"uid": "review-1", "desiredAPIVersion": f"{GROUP}/{to}", "objects": list(objects)}
    return encode({"kind": "ConversionReview", "apiVersion": f"apiextensions.k8s.io/{version}", "request": review})


async def call_webhook(hook: AdmissionWebhook[Any] | ConversionWebhook, body: bytes, **options: Any) -> WebhookResponse:
    """Call one webhook as the API server does, without a socket."""
    return await Webhooks(hook).handle(hook.path, body, **options)


async def review_response(hook: AdmissionWebhook[Any] | ConversionWebhook, body: bytes) -> Json:
    """Call one webhook and return the response in the review."""
    response = await call_webhook(hook, body)
    assert response.code == 200, response.body
    review = json.loads(response.body)
    assert review["response"]["uid"] == "review-1"
    return dict(review["response"])


def patch_in(response: Json) -> list[Json]:
    """Return the JSON patch of a response."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    return list(json.loads(base64.b64decode(response["patch"])))
