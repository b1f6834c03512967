"""A client of any Kubernetes cluster, with every verb, for typed and unstructured objects.

    async with Client.connect() as client:
        web = await client.get(Deployment, "web", namespace="shop")
        web.spec.replicas = 5
        await client.update(web)

`load_config` finds the cluster. `HttpTransport` sends requests over sockets, `InProcessTransport` to a server in the
same process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.client.access.config import ClientConfig
from konverge.client.access.credentials import StaticCredentials
from konverge.client.base_client import BaseClient
from konverge.client.caller import Observer, WriteGuard
from konverge.client.client import Client, IssuedToken
from konverge.client.collections import Collection
from konverge.client.commands import ExecResult
from konverge.client.connection.limits import Limits
from konverge.client.discovery import ApiResource, Discovery
from konverge.client.impersonation import Impersonation
from konverge.client.in_process import InProcessTransport
from konverge.client.lists import ObjectList, WatchEvent
from konverge.client.options import ClientOptions
from konverge.client.reader import Reader
from konverge.client.retry import RetryPolicy
from konverge.client.wait import WaitCondition, exists, field_equals, has_condition, is_deleted, is_deployment_complete
from konverge.client.writes import WriteEvent, WriteListener

if TYPE_CHECKING:
    from konverge.client.access.loading import load_config
    from konverge.client.transport import HttpTransport

_LAZY = {"HttpTransport": "konverge.client.transport", "load_config": "konverge.client.access.loading"}
"""What is loaded on first use: the HTTP engine, and what reads kubeconfig files."""

__all__ = [
    "ApiResource",
    "BaseClient",
    "Client",
    "ClientConfig",
    "ClientOptions",
    "Collection",
    "Discovery",
    "ExecResult",
    "HttpTransport",
    "Impersonation",
    "InProcessTransport",
    "IssuedToken",
    "Limits",
    "ObjectList",
    "Observer",
    "Reader",
    "RetryPolicy",
    "StaticCredentials",
    "WaitCondition",
    "WatchEvent",
    "WriteEvent",
    "WriteGuard",
    "WriteListener",
    "exists",
    "field_equals",
    "has_condition",
    "is_deleted",
    "is_deployment_complete",
    "load_config",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'konverge.client' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
