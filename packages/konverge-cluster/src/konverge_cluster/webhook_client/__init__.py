"""The webhook client: `WebhookClient.post` sends both admission and conversion reviews.

A webhook is configured with a URL or a service reference. A service reference resolves to a function in this process,
or to the address of a server; both are registered with the client.
"""

from __future__ import annotations

from konverge_cluster.webhook_client.client import Handler, WebhookClient
from konverge_cluster.webhook_client.https import HttpsTransport
from konverge_cluster.webhook_client.responses import HttpResponse, WebhookCallError
from konverge_cluster.webhook_client.targets import Target

__all__ = ["Handler", "HttpResponse", "HttpsTransport", "Target", "WebhookCallError", "WebhookClient"]
