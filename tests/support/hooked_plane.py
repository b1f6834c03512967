"""An embedded server with webhooks in the same process, on virtual time."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from embedded_plane import Json, Plane

Answer = Callable[[Json], Awaitable[Json]]

HOOKS = "/apis/admissionregistration.k8s.io/v1"


def patching(*operations: Json) -> Json:
    """A response that changes the object."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


class HookedPlane(Plane):
    """A plane whose webhooks are functions: each takes the request of a review and gives the response.

    `called` tells which ones were called, in order; `requests` what they were told.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.called: list[str] = []
        self.requests: list[Json] = []

    def hook(self, name: str, answer: Json | Answer, **more: Any) -> Json:
        """Make a webhook for ConfigMaps; `more` are fields of its configuration."""

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
