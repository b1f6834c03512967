"""WebApp as it was in v1beta1, and the way between the two versions.

| v1beta1 | v1 |
|---|---|
| `size` | `replicas`: renamed |
| `host` | `ingress.host`: restructured; what else is in `ingress` is kept in an annotation |
| - | `progressDeadlineSeconds`: kept in the same annotation |
"""

from __future__ import annotations

from typing import Annotated

from konverge import CustomResource, Meta, Model, Spec, field
from konverge.schema import AGE, Column, Scale
from konverge.webhooks import AnnotationValue, ConversionWebhook, Converter
from konverge_operators.webapp.api import Autoscaling, Exposure, Resources, WebApp, WebAppSpec, WebAppStatus

__all__ = ["WebAppV1Beta1", "WebAppV1Beta1Spec", "conversion"]


class WebAppV1Beta1Spec(Spec):
    """What the application shall be."""

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
    """A stateless web application, as it was."""


class _Newer(Model):
    """What v1 says and v1beta1 cannot."""

    progress_deadline_seconds: Annotated[int, Meta(ge=1)] | None = None
    path: str | None = None
    class_name: str | None = None


_NEWER = AnnotationValue("webapp.example.com/v1", _Newer)
_DEADLINE = WebAppSpec(image="-").progress_deadline_seconds
_PATH = Exposure(host="-").path


def _up(old: WebAppV1Beta1) -> WebApp:
    newer = _NEWER.take(old) or _Newer()
    spec = old.spec
    exposure = None
    if spec.host is not None:
        path = _PATH if newer.path is None else newer.path
        exposure = Exposure(host=spec.host, path=path, class_name=newer.class_name)
    made = WebAppSpec(
        image=spec.image,
        replicas=spec.size,
        port=spec.port,
        env=spec.env,
        resources=spec.resources,
        ingress=exposure,
        autoscaling=spec.autoscaling,
        rollback=spec.rollback,
        progress_deadline_seconds=newer.progress_deadline_seconds or _DEADLINE,
    )
    return WebApp(metadata=old.metadata, spec=made, status=old.status)


def _down(new: WebApp) -> WebAppV1Beta1:
    spec, exposure = new.spec, new.spec.ingress
    made = WebAppV1Beta1Spec(
        image=spec.image,
        size=spec.replicas,
        port=spec.port,
        env=spec.env,
        resources=spec.resources,
        host=exposure.host if exposure is not None else None,
        autoscaling=spec.autoscaling,
        rollback=spec.rollback,
    )
    old = WebAppV1Beta1(metadata=new.metadata, spec=made, status=new.status)
    _NEWER.put(old, _newer(spec, exposure))
    return old


def _newer(spec: WebAppSpec, exposure: Exposure | None) -> _Newer | None:
    """Note what differs from what `_up` would make without a note; None when nothing does."""
    newer = _Newer()
    if spec.progress_deadline_seconds != _DEADLINE:
        newer.progress_deadline_seconds = spec.progress_deadline_seconds
    if exposure is not None:
        newer.path = exposure.path if exposure.path != _PATH else None
        newer.class_name = exposure.class_name
    return newer if newer != _Newer() else None


conversion = ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, _up, _down))
"""Between the versions, without loss in either direction."""
