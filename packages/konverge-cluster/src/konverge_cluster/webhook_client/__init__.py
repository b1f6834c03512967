"""Calls from the server to webhooks: admission and conversion both go out through `WebhookClient.post`.

A webhook is named by a URL or by a reference to a service. Behind a service stands either a function in this process or
the address of a server; whoever runs the cluster registers it.
"""

from __future__ import annotations

from konverge_cluster.webhook_client.client import Handler, WebhookClient
from konverge_cluster.webhook_client.https import HttpsTransport
from konverge_cluster.webhook_client.responses import HttpResponse, WebhookCallError
from konverge_cluster.webhook_client.targets import Target

__all__ = ["Handler", "HttpResponse", "HttpsTransport", "Target", "WebhookCallError", "WebhookClient"]
