"""The caBundle of webhook configurations and CRDs: told to API servers, and nothing else touched.

The patch holds a test for each webhook that it is about, by name: when somebody changes the list meanwhile, the server
refuses the patch instead of putting the bundle in the wrong place, and we look again.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from konverge.client import Client
from konverge.errors import Conflict, Invalid, NotFound
from konverge.k8s.admissionregistration.v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from konverge.k8s.apiextensions.v1 import CustomResourceDefinition
from konverge.objects import AnyObject, Kind, Unstructured, kind_of

__all__ = ["BundleTarget", "bundle_patch", "inject_bundle"]

_CONFIGURATIONS: Final = (kind_of(ValidatingWebhookConfiguration), kind_of(MutatingWebhookConfiguration))
_CRD: Final = kind_of(CustomResourceDefinition)
_TRIES: Final = 5
_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True)
class BundleTarget:
    """An object that names webhooks and whom their callers trust: a webhook configuration or a CRD.

    Raises: ValueError for another kind.
    """

    kind: Kind
    name: str

    def __post_init__(self) -> None:
        if self.kind not in (*_CONFIGURATIONS, _CRD):
            raise ValueError(f"a {self.kind.kind} has no caBundle: give a webhook configuration or a CRD")

    @classmethod
    def of(cls, obj: AnyObject) -> BundleTarget:
        """Point at an object that was made here: a generated configuration, or a CRD."""
        known = {(kind.api_version, kind.kind): kind for kind in (*_CONFIGURATIONS, _CRD)}
        kind = known.get((obj.api_version, obj.kind))
        if kind is None:
            raise ValueError(f"a {obj.kind} has no caBundle: give a webhook configuration or a CRD")
        return cls(kind, obj.name)


async def inject_bundle(client: Client, bundle: bytes, targets: Iterable[BundleTarget]) -> list[BundleTarget]:
    """Make the objects trust the bundle, where they do not yet; give those that are not there.

    Raises: the ApiError of a refusal.
    """
    return [target for target in targets if not await _inject(client, bundle, target)]


async def _inject(client: Client, bundle: bytes, target: BundleTarget) -> bool:
    for attempt in range(_TRIES):
        try:
            found = await client.get(target.kind, target.name)
            patch = bundle_patch(found, bundle)
            if patch:
                await client.patch(target.kind, target.name, patch, patch_type="json")
                facts = {"kind": target.kind.kind, "key": target.name}
                _log.info("The certificate authorities of webhooks were changed", extra=facts)
            return True
        except NotFound:
            return False
        except (Conflict, Invalid):
            # A test of the patch failed: somebody wrote in between.
            if attempt == _TRIES - 1:
                raise
    return False


def bundle_patch(found: Unstructured, bundle: bytes) -> list[dict[str, Any]]:
    """Give the JSON patch that makes an object trust the bundle; empty when it does already."""
    text = base64.b64encode(bundle).decode()
    return [step for each in _places(found) for step in _steps(*each, text)]


def _places(found: Unstructured) -> Iterator[tuple[str, str, str, Any]]:
    """Give each clientConfig with its path, and the place and value that tell whether it is still that one."""
    for place, webhook in enumerate(found.get("webhooks") or ()):
        yield f"/webhooks/{place}/clientConfig", f"/webhooks/{place}/name", webhook["name"], webhook["clientConfig"]
    conversion = (found.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook" and "clientConfig" in (conversion.get("webhook") or {}):
        at = "/spec/conversion"
        yield f"{at}/webhook/clientConfig", f"{at}/strategy", "Webhook", conversion["webhook"]["clientConfig"]


def _steps(path: str, guard: str, expected: str, config: dict[str, Any], text: str) -> Iterator[dict[str, Any]]:
    if config.get("caBundle") != text:
        yield {"op": "test", "path": guard, "value": expected}
        yield {"op": "add", "path": f"{path}/caBundle", "value": text}
