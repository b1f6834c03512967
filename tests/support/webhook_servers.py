"""An embedded server with webhooks in the same process, on virtual time."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from virtual_server import Json, VirtualTimeServer

Answer = Callable[[Json], Awaitable[Json]]

HOOKS = "/apis/admissionregistration.k8s.io/v1"


def patching(*operations: Json) -> Json:
    """Return a response with a JSON patch."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


class WebhookTestServer(VirtualTimeServer):
    """An embedded server whose webhooks are functions from the request of a review to the response.

    `called` are the names of the called webhooks, in order; `requests` the requests that they received.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.called: list[str] = []
        self.requests: list[Json] = []

    def hook(self, name: str, answer: Json | Answer, **more: Any) -> Json:
        """Register a webhook for ConfigMaps and return its configuration; `more` are further fields."""

        async def handle(_path: str, review: Json) -> Json:
            self.called.append(name)
            self.requests.append(review["request"])
            response = answer if isinstance(answer, dict) else await answer(review["request"])
            response = {"uid": review["request"]["uid"], **response}
            return {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}

        self.server.webhook_client.serve("hooks", name, handle)
        rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        return {
            "name": f"{name}.hooks.test",
            "clientConfig": {"service": {"namespace": "hooks", "name": name}},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }

    async def configure(self, kind: str, *hooks: Json, name: str = "hooks") -> Json:
        return await self.good(
            "POST", f"{HOOKS}/{kind}webhookconfigurations", {"metadata": {"name": name}, "webhooks": hooks}
        )
