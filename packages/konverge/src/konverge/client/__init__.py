"""THE WAY to the server and back: a client of any Kubernetes cluster, with every verb, typed and untyped.

    async with Client.connect() as client:
        web = await client.get(Deployment, "web", namespace="shop")
        web.spec.replicas = 5
        await client.update(web)

`config` finds the cluster, `transport` carries requests over sockets, `inprocess` to a server in the same process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from konverge.client.access.config import ClientConfig, load_config
from konverge.client.access.credentials import StaticCredentials
from konverge.client.caller import Observer, WriteGuard
from konverge.client.client import Client, IssuedToken
from konverge.client.collections import Collection
from konverge.client.connection.limits import Limits
from konverge.client.discovery import Discovery, Served
from konverge.client.impersonation import Impersonation
from konverge.client.in_process import InProcessTransport
from konverge.client.lists import Listing, WatchEvent
from konverge.client.reader import Reader, Settings
from konverge.client.retry import RetryPolicy
from konverge.client.waiting import Claim, condition, deleted, exists, field_is, rolled_out
from konverge.client.writes import WriteListener, Written

if TYPE_CHECKING:
    from konverge.client.transport import HttpTransport

__all__ = [
    "Claim",
    "Client",
    "ClientConfig",
    "Collection",
    "Discovery",
    "HttpTransport",
    "Impersonation",
    "InProcessTransport",
    "IssuedToken",
    "Limits",
    "Listing",
    "Observer",
    "Reader",
    "RetryPolicy",
    "Served",
    "Settings",
    "StaticCredentials",
    "WatchEvent",
    "WriteGuard",
    "WriteListener",
    "Written",
    "condition",
    "deleted",
    "exists",
    "field_is",
    "load_config",
    "rolled_out",
]


def __getattr__(name: str) -> Any:
    # The HTTP library is loaded with the first name that needs it.
    if name == "HttpTransport":
        return import_module("konverge.client.transport").HttpTransport
    raise AttributeError(f"module 'konverge.client' has no attribute {name!r}")
