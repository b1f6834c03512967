"""WebApp v1beta1, and the conversion between v1beta1 and v1.

| v1beta1 | v1 |
|---|---|
| `size` | `replicas`: renamed |
| `host` | `ingress.host`: restructured; the other fields of `ingress` are stored in an annotation |
| - | `progressDeadlineSeconds`, `envFrom`, `probes` and what else is new in v1: stored in the same annotation |
"""

from __future__ import annotations

from typing import Annotated, Any

from konverge import CustomResource, Meta, Model, Spec, field
from konverge.schema import AGE, Column, Scale
from konverge.webhooks import AnnotationValue, ConversionWebhook, Converter
from konverge_operators.webapp.api import (
    MAX_REPLICAS,
    Autoscaling,
    EnvFrom,
    GatewayReference,
    IngressOptions,
    Monitoring,
    Port,
    Probes,
    Resources,
    Scheduling,
    SecretReference,
    Security,
    Strategy,
    Tls,
    WebApp,
    WebAppSpec,
    WebAppStatus,
)

__all__ = ["WebAppV1Beta1", "WebAppV1Beta1Spec", "conversion"]


class WebAppV1Beta1Spec(Spec):
    """The desired state of the application."""

    image: Annotated[str, Meta(min_length=1)]
    size: Annotated[int, Meta(ge=0, le=MAX_REPLICAS)] = 1
    port: Port = 80
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


class _V1Ingress(Model):
    """The fields of the ingress that v1beta1 does not have."""

    path: str | None = None
    class_name: str | None = None
    annotations: dict[str, str] | None = None
    tls: Tls | None = None
    gateway: GatewayReference | None = None


class _V1Fields(_V1Ingress):
    """The fields of v1 that v1beta1 does not have."""

    progress_deadline_seconds: Annotated[int, Meta(ge=1)] | None = None
    env_from: list[EnvFrom] | None = None
    image_pull_secrets: list[SecretReference] | None = None
    service_account_name: str | None = None
    automount_service_account_token: bool | None = None
    probes: Probes | None = None
    security: Security | None = None
    scheduling: Scheduling | None = None
    strategy: Strategy | None = None
    monitoring: Monitoring | None = None
    suspend: bool | None = None


_V1_ANNOTATION = AnnotationValue("webapp.example.com/v1", _V1Fields)
_INGRESS_FIELDS = _V1Ingress.__struct_fields__
_SPEC_FIELDS = tuple(name for name in _V1Fields.__struct_fields__ if name not in _INGRESS_FIELDS)
_DEFAULT_SPEC = WebAppSpec(image="-")
_DEFAULT_INGRESS = IngressOptions(host="-")


def _up(old: WebAppV1Beta1) -> WebApp:
    stored = _V1_ANNOTATION.pop(old) or _V1Fields()
    spec = old.spec
    ingress = None
    if spec.host is not None:
        ingress = IngressOptions(host=spec.host)
        _restore(ingress, stored, _INGRESS_FIELDS)
    new_spec = WebAppSpec(
        image=spec.image,
        replicas=spec.size,
        port=spec.port,
        env=spec.env,
        resources=spec.resources,
        ingress=ingress,
        autoscaling=spec.autoscaling,
        rollback=spec.rollback,
    )
    _restore(new_spec, stored, _SPEC_FIELDS)
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
    fields = _changed(spec, _DEFAULT_SPEC, _SPEC_FIELDS)
    if ingress is not None:
        fields |= _changed(ingress, _DEFAULT_INGRESS, _INGRESS_FIELDS)
    _V1_ANNOTATION.put(old, _V1Fields(**fields) if fields else None)
    return old


def _restore(part: Spec, stored: _V1Fields, names: tuple[str, ...]) -> None:
    for name in names:
        value = getattr(stored, name)
        if value is not None:
            setattr(part, name, value)


def _changed(part: Spec, default: Spec, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that `_up` could not restore without the annotation."""
    values = {name: getattr(part, name) for name in names}
    return {name: value for name, value in values.items() if value != getattr(default, name)}


conversion = ConversionWebhook(WebApp, Converter(WebAppV1Beta1, WebApp, _up, _down))
"""Converts between the versions without loss in either direction."""
