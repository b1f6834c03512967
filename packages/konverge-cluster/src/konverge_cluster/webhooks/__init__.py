"""Admission webhooks: other programs that may change or refuse a write, called by the server.

`WebhookAdmission` is the plug-in of the admission chain. It reads the webhook configurations that are stored in the
cluster at the moment of the write, so that a new one counts from its creation on.
"""

from __future__ import annotations

from konverge_cluster.webhooks.admission import WebhookAdmission

__all__ = ["WebhookAdmission"]
