"""Admission webhooks: external programs that the server calls, and that may change or reject a write.

`WebhookAdmission` is the plug-in of the admission chain. It reads the webhook configurations that are stored in the
cluster at the time of the write, so a new configuration takes effect when it is created.
"""

from __future__ import annotations

from konverge_cluster.webhooks.admission import WebhookAdmission

__all__ = ["WebhookAdmission"]
