"""Calls from the server to webhooks: admission and conversion both go out through `WebhookClient.post`.

A webhook is named by a URL or by a reference to a service. Behind a service stands either a function in this process or
the address of a server; whoever runs the cluster registers it.
"""

from __future__ import annotations

from konverge_cluster.webhook_client.exchange import Handler, WebhookClient
from konverge_cluster.webhook_client.https import HttpsCaller
from konverge_cluster.webhook_client.replies import CalloutFailure, Reply
from konverge_cluster.webhook_client.targets import Target

__all__ = ["CalloutFailure", "Handler", "HttpsCaller", "Reply", "Target", "WebhookClient"]
