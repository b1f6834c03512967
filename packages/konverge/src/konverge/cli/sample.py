"""The sample type that `python -m konverge` prints the CRD of."""

from __future__ import annotations

from typing import Annotated

from konverge.schema import AGE, Column, CustomResource, Meta, Scale, Spec, Status

__all__ = ["WebApp", "WebAppSpec", "WebAppStatus"]


class WebAppSpec(Spec):
    """What the author of a WebApp wants."""

    image: Annotated[str, Meta(min_length=1)]
    """The container image to run."""
    replicas: Annotated[int, Meta(ge=0, le=100)] = 1
    """How many copies run at a time."""


class WebAppStatus(Status):
    """What the operator found."""

    available_replicas: int = 0
    """How many copies are ready to serve."""


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
