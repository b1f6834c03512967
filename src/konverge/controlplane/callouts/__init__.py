"""Calls from the server to webhooks: admission and conversion both go out through `Callouts.post`.

A webhook is named by a URL or by a reference to a service. Behind a service stands either a function in this process or
the address of a server; whoever runs the cluster registers it.
"""

from __future__ import annotations

from konverge.controlplane.callouts.exchange import Callouts, Handler
from konverge.controlplane.callouts.https import HttpsCaller
from konverge.controlplane.callouts.replies import CalloutFailure, Reply
from konverge.controlplane.callouts.targets import Target

__all__ = ["CalloutFailure", "Callouts", "Handler", "HttpsCaller", "Reply", "Target"]
