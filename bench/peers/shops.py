"""The custom resource of the controller benchmark, written with konverge."""

from __future__ import annotations

from konverge import CustomResource, Spec, Status

__all__ = ["Shop"]


class ShopSpec(Spec):
    image: str
    replicas: int = 1


class ShopStatus(Status):
    observed_generation: int = 0
    ready: int = 0


class Shop(CustomResource[ShopSpec, ShopStatus], group="bench.example.com", version="v1"):
    """A web server with a name."""
