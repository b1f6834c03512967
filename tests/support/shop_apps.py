"""EcommerceApps for tests: the sample, its Secret, and what the operator makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

import konverge_operators.ecommerce
from konverge import Client, ObjectMeta
from konverge.k8s.core.v1 import Namespace, Secret
from konverge.objects import from_wire
from konverge_operators.ecommerce.api import EcommerceApp

SAMPLES = Path(konverge_operators.ecommerce.__file__).parent / "samples"
NAME, NAMESPACE = "my-ecommerce-app", "production"


def sample(namespace: str = NAMESPACE, **spec: Any) -> EcommerceApp:
    """Return the application of the sample, with some fields of its spec changed."""
    return read_sample("ecommerce-app.yaml", namespace, **spec)


def read_sample(file: str, namespace: str = NAMESPACE, **spec: Any) -> EcommerceApp:
    """Return the application of a file of samples, with some fields of its spec changed."""
    document = yaml.safe_load((SAMPLES / file).read_text())
    document["metadata"]["namespace"] = namespace
    _merge(document["spec"], spec)
    return from_wire(EcommerceApp, document)


def _merge(into: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def credentials(namespace: str = NAMESPACE) -> Secret:
    data = {"issuer": "https://login.example.com", "client-id": "shop", "client-secret": "s3cret"}
    return Secret(metadata=ObjectMeta(name=f"{NAME}-oauth2", namespace=namespace), string_data=data)


async def prepare(client: Client, *, configured: bool = True) -> None:
    """Create the namespace of the sample and the Secret that it needs."""
    await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    if configured:
        await client.create(credentials())
