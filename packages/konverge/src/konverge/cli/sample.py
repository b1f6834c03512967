"""The sample kind WebApp, whose CRD `konverge sample` prints."""

from __future__ import annotations

from typing import Annotated

from konverge.schema import AGE, Column, CustomResource, Meta, Scale, Spec, Status

__all__ = ["WebApp", "WebAppSpec", "WebAppStatus"]


class WebAppSpec(Spec):
    """The desired state of the application."""

    image: Annotated[str, Meta(min_length=1)]
    """The container image to run."""
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1
    """The number of replicas."""


class WebAppStatus(Status):
    """The observed state of the application."""

    available_replicas: int = 0
    """The number of available replicas."""


class WebApp(
    CustomResource[WebAppSpec, WebAppStatus],
    group="example.com",
    version="v1",
    short_names=("wa",),
    scale=Scale(status_replicas=".status.availableReplicas"),
    columns=(
        Column("Image", ".spec.image"),
        Column("Replicas", ".spec.replicas"),
        Column("Available", ".status.availableReplicas"),
        AGE,
    ),
):
    """A stateless web application."""
