"""WebApp v1beta1, and the conversion between v1beta1 and v1.

| v1beta1 | v1 |
|---|---|
| `size` | `replicas`: renamed |
| `host` | `ingress.host`: restructured; the other fields of `ingress` are stored in an annotation |
| - | `progressDeadlineSeconds`: stored in the same annotation |
"""

from __future__ import annotations

from typing import Annotated

from konverge import CustomResource, Meta, Model, Spec, field
from konverge.schema import AGE, Column, Scale
from konverge.webhooks import AnnotationValue, ConversionWebhook, Converter
from konverge_operators.webapp.api import Autoscaling, IngressOptions, Resources, WebApp, WebAppSpec, WebAppStatus

__all__ = ["WebAppV1Beta1", "WebAppV1Beta1Spec", "conversion"]


class WebAppV1Beta1Spec(Spec):
    """The desired state of the application."""

    image: Annotated[str, Meta(min_length=1)]
    size: Annotated[int, Meta(ge=0, le=1000)] = 1
    port: Annotated[int, Meta(ge=1, le=65535)] = 80
    env: dict[str, str] = field(default_factory=dict)
    resources: Resources | None = None
    host: Annotated[str, Meta(min_length=1)] | None = None
    autoscaling: Autoscaling | None = None
    rollback: bool = False


class WebAppV1Beta1(
    CustomResource[WebAppV1Beta1Spec, WebAppStatus],
    group="example.com",
    version="v1beta1",
    kind="WebApp",
    plural="webapps",
    short_names=("wa",),
    categories=("all",),
    storage=False,
    deprecated="example.com/v1beta1 WebApp is deprecated; use example.com/v1 WebApp",
    scale=Scale(replicas=".spec.size", status_replicas=".status.replicas", selector=".status.selector"),
    columns=(
        Column("Image", ".spec.image"),
        Column("Size", ".spec.size"),
        Column("Available", ".status.availableReplicas"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
):
    """A stateless web application, in its first version."""


class _V1Fields(Model):
    """The fields of v1 that v1beta1 does not have."""

    progress_deadline_seconds: Annotated[int, Meta(ge=1)] | None = None
    path: str | None = None
    class_name: str | None = None


_V1_ANNOTATION = AnnotationValue("webapp.example.com/v1", _V1Fields)
_DEADLINE = WebAppSpec(image="-").progress_deadline_seconds
_PATH = IngressOptions(host="-").path


def _up(old: WebAppV1Beta1) -> WebApp:
    stored = _V1_ANNOTATION.pop(old) or _V1Fields()
    spec = old.spec
    ingress = None
    if spec.host is not None:
        path = _PATH if stored.path is None else stored.path
        ingress = IngressOptions(host=spec.host, path=path, class_name=stored.class_name)
    new_spec = WebAppSpec(
        image=spec.image,
        replicas=spec.size,
        port=spec.port,
        env=spec.env,
        resources=spec.resources,
        ingress=ingress,
        autoscaling=spec.autoscaling,
        rollback=spec.rollback,
        progress_deadline_seconds=stored.progress_deadline_seconds or _DEADLINE,
    )
    return WebApp(metadata=old.metadata, spec=new_spec, status=old.status)


def _down(new: WebApp) -> WebAppV1Beta1:
    spec, ingress = new.spec, new.spec.ingress
    old_spec = WebAppV1Beta1Spec(
        image=spec.image,
        size=spec.replicas,
        port=spec.port,
        env=spec.env,
        resources=spec.resources,
        host=ingress.host if ingress is not None else None,
        autoscaling=spec.autoscaling,
        rollback=spec.rollback,
    )
    old = WebAppV1Beta1(metadata=new.metadata, spec=old_spec, status=new.status)
    _V1_ANNOTATION.put(old, _v1_fields(spec, ingress))
    return old


def _v1_fields(spec: WebAppSpec, ingress: IngressOptions | None) -> _V1Fields | None:
    """Return the fields that `_up` could not restore without the annotation; None if there are none."""
    fields = _V1Fields()
    if spec.progress_deadline_seconds != _DEADLINE:
        fields.progress_deadline_seconds = spec.progress_deadline_seconds
    if ingress is not None:
        fields.path = ingress.path if ingress.path != _PATH else None
        fields.class_name = ingress.class_name
    return fields if fields != _V1Fields() else None


conversion = ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, _up, _down))
"""Converts between the versions without loss in either direction."""
