"""Inject the caBundle into webhook configurations and CRDs, and change nothing else.

The patch contains a test operation for the name of each webhook: when the list was changed meanwhile, the server
rejects the patch instead of writing the bundle to the wrong webhook, and the injection is retried.
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
from konverge.objects import AnyObject, Key, Kind, Unstructured, kind_of

__all__ = ["BundleTarget", "bundle_patch", "inject_bundle"]

_CONFIGURATIONS: Final = (kind_of(ValidatingWebhookConfiguration), kind_of(MutatingWebhookConfiguration))
_CRD: Final = kind_of(CustomResourceDefinition)
_ATTEMPTS: Final = 5
_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True)
class BundleTarget:
    """An object with a caBundle for its webhooks: a webhook configuration or a CRD.

    With `service`, webhooks of other Services are left alone: a CRD is shared by all installations of an operator, and
    one of them converts its objects.

    Raises: ValueError for another kind.
    """

    kind: Kind
    name: str
    service: Key | None = None

    def __post_init__(self) -> None:
        if self.kind not in (*_CONFIGURATIONS, _CRD):
            raise ValueError(f"a {self.kind.kind} has no caBundle: pass a webhook configuration or a CRD")

    @classmethod
    def of(cls, obj: AnyObject) -> BundleTarget:
        """Return the target for an object: a generated configuration, or a CRD."""
        known = {(kind.api_version, kind.kind): kind for kind in (*_CONFIGURATIONS, _CRD)}
        kind = known.get((obj.api_version, obj.kind))
        if kind is None:
            raise ValueError(f"a {obj.kind} has no caBundle: pass a webhook configuration or a CRD")
        return cls(kind, obj.name, _service_of(obj) if kind == _CRD and isinstance(obj, Unstructured) else None)


async def inject_bundle(client: Client, bundle: bytes, targets: Iterable[BundleTarget]) -> list[BundleTarget]:
    """Write the bundle into the objects where it differs; return the objects that do not exist.

    Raises: the ApiError of a rejected request.
    """
    return [target for target in targets if not await _inject(client, bundle, target)]


async def _inject(client: Client, bundle: bytes, target: BundleTarget) -> bool:
    for attempt in range(_ATTEMPTS):
        try:
            found = await client.get(target.kind, target.name)
            patch = bundle_patch(found, bundle, target.service)
            if patch:
                await client.patch(target.kind, target.name, patch, patch_type="json")
                facts = {"kind": target.kind.kind, "key": target.name}
                _log.info("caBundle injected", extra=facts)
            return True
        except NotFound:
            return False
        except (Conflict, Invalid):
            # A test of the patch failed: the object was written in between.
            if attempt == _ATTEMPTS - 1:
                raise
    return False


def bundle_patch(found: Unstructured, bundle: bytes, service: Key | None = None) -> list[dict[str, Any]]:
    """Return the JSON patch that writes the bundle into an object; empty when it has the bundle already.

    With `service`, a webhook of another Service is left alone.
    """
    text = base64.b64encode(bundle).decode()
    configs = [each for each in _client_configs(found) if not _is_foreign(each[-1], service)]
    return [step for each in configs for step in _steps(*each, text)]


def _is_foreign(config: dict[str, Any], service: Key | None) -> bool:
    found = _key_of(config)
    return None not in (found, service) and found != service


def _service_of(crd: Unstructured) -> Key | None:
    """Return the Service that converts the objects of a CRD."""
    return next((_key_of(config) for *_, config in _client_configs(crd)), None)


def _key_of(config: dict[str, Any]) -> Key | None:
    """Return the Service of a clientConfig; None if it has a URL."""
    service = config.get("service")
    return Key(service["namespace"], service["name"]) if service else None


def _client_configs(found: Unstructured) -> Iterator[tuple[str, str, str, Any]]:
    """Yield the path of each clientConfig, path and value of the test operation for it, and the clientConfig."""
    for index, webhook in enumerate(found.get("webhooks") or ()):
        yield f"/webhooks/{index}/clientConfig", f"/webhooks/{index}/name", webhook["name"], webhook["clientConfig"]
    conversion = (found.get("spec") or {}).get("conversion") or {}
    if conversion.get("strategy") == "Webhook" and "clientConfig" in (conversion.get("webhook") or {}):
        at = "/spec/conversion"
        yield f"{at}/webhook/clientConfig", f"{at}/strategy", "Webhook", conversion["webhook"]["clientConfig"]


def _steps(path: str, test_path: str, expected: str, config: dict[str, Any], text: str) -> Iterator[dict[str, Any]]:
    if config.get("caBundle") != text:
        yield {"op": "test", "path": test_path, "value": expected}
        yield {"op": "add", "path": f"{path}/caBundle", "value": text}
