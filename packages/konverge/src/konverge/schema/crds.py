"""CustomResourceDefinitions from classes, as objects and as YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from konverge.objects.codec import to_wire
from konverge.objects.resources import AnyObject, Unstructured
from konverge.schema.custom_resource import CustomResource, definition_of, root_schema
from konverge.schema.definitions import Definition
from konverge.schema.rules import strip_private
from konverge.schema.schema_errors import invalid_value

__all__ = ["WebhookConversion", "crd_for", "to_yaml"]


@dataclass(frozen=True)
class WebhookConversion:
    """The address of the conversion webhook: a service in the cluster, or a URL.

    Raises: ValueError unless exactly one of the two is given.
    """

    service_name: str = ""
    service_namespace: str = ""
    path: str = "/convert"
    port: int = 443
    url: str = ""
    ca_bundle: str = ""

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.service_name) or bool(self.service_name) != bool(self.service_namespace):
            raise ValueError("a WebhookConversion has either a url, or a service_name and a service_namespace")
        if self.url and not self.url.startswith("https://"):
            raise ValueError(f"{self.url!r} is not a webhook URL: write https://...")

    def to_wire(self) -> dict[str, Any]:
        """Return `.spec.conversion` of the CRD."""
        client: dict[str, Any] = {"url": self.url}
        if self.service_name:
            service = {"name": self.service_name, "namespace": self.service_namespace}
            client = {"service": {**service, "path": self.path, "port": self.port}}
        if self.ca_bundle:
            client["caBundle"] = self.ca_bundle
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        return {"strategy": "Webhook", "webhook": webhook}


def crd_for(
    *versions: type[CustomResource[Any, Any]], conversion: WebhookConversion | None = None, descriptions: bool = True
) -> Unstructured:
    """Return the CustomResourceDefinition of a kind, built from the classes of its versions.

    Without a conversion the strategy is None: the server changes the apiVersion and nothing else. Without descriptions
    a CRD that embeds large kinds stays below the limit of the annotation that `kubectl apply` writes (256 KiB).

    Raises: ValueError if the classes are not versions of one kind, or if not exactly one of them is stored.
    """
    definitions = [definition_of(version) for version in versions]
    stored = _stored(definitions)
    _check_versions(definitions)
    for definition in definitions:
        _check_same_kind(stored, definition)
    schemas = [strip_private(root_schema(version, descriptions=descriptions)) for version in versions]
    entries = [definition.version_entry(schema) for definition, schema in zip(definitions, schemas, strict=True)]
    spec: dict[str, Any] = {"group": stored.group, "names": stored.names(), "scope": stored.scope.value}
    if conversion is not None:
        spec["conversion"] = conversion.to_wire()
    spec["versions"] = entries
    return Unstructured(
        apiVersion="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        metadata={"name": f"{stored.plural}.{stored.group}"},
        spec=spec,
    )


def to_yaml(*objects: AnyObject) -> str:
    """Return objects as YAML documents for kubectl; the same objects give the same text.

    The fields of a CRD are in the order in which the classes declare them.
    """
    documents = [dict(obj) if isinstance(obj, Unstructured) else to_wire(obj) for obj in objects]
    from konverge.schema.yaml_documents import dump_documents  # YAML costs more than the rest of this package

    return dump_documents(documents)


def _stored(definitions: list[Definition]) -> Definition:
    stored = [definition for definition in definitions if definition.storage]
    if len(stored) != 1:
        names = ", ".join(definition.version for definition in stored) or "none"
        what = f"exactly one version must be stored, got {names}"
        raise invalid_value(".spec.versions", what, "write storage=False on the others")
    return stored[0]


def _check_versions(definitions: list[Definition]) -> None:
    names = [definition.version for definition in definitions]
    for name in names:
        if names.count(name) > 1:
            raise invalid_value(".spec.versions", f"the version {name} is declared twice", "pass each version once")


def _check_same_kind(stored: Definition, other: Definition) -> None:
    for key, at in _SHARED.items():
        expected, found = getattr(stored, key), getattr(other, key)
        if expected != found and not (found == () and isinstance(expected, tuple)):
            what = f"{stored.version} has {key}={expected!r} and {other.version} has {key}={found!r}"
            raise invalid_value(at, what, "use the same value in all versions of a kind")


_SHARED = {
    "group": ".spec.group",
    "kind": ".spec.names.kind",
    "plural": ".spec.names.plural",
    "singular": ".spec.names.singular",
    "list_kind": ".spec.names.listKind",
    "short_names": ".spec.names.shortNames",
    "categories": ".spec.names.categories",
    "scope": ".spec.scope",
}
