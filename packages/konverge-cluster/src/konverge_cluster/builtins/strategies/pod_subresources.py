"""The pod subresources `ephemeralcontainers` and `resize`."""

# ruff: noqa: ARG002

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge_cluster.api.field_errors import FieldError, forbidden, invalid
from konverge_cluster.api.strategy import Document, RequestContext
from konverge_cluster.builtins.qos import qos_class
from konverge_cluster.builtins.strategy import reset_metadata
from konverge_cluster.builtins.validation.pods import validate_pod

__all__ = ["EphemeralContainersEndpoint", "ResizeEndpoint"]


def _update_generation(new: Document, old: Document) -> None:
    if new["spec"] != old["spec"]:
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


class EphemeralContainersEndpoint:
    """Add ephemeral containers to a running pod. Nothing else changes, and existing ones are immutable."""

    reset_fields = ("status",)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        containers = new["spec"].get("ephemeralContainers")
        spec = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
        new["spec"] = {**spec, "ephemeralContainers": containers} if containers else spec
        new["status"] = old["status"]
        reset_metadata(new, old)
        _update_generation(new, old)

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        errors = list(validate_pod(new))
        present = {each["name"]: each for each in new["spec"].get("ephemeralContainers", ())}
        for container in old["spec"].get("ephemeralContainers", ()):
            name = container["name"]
            if name not in present:
                text = f'existing ephemeral containers "{name}" may not be removed\\n'
                errors.append(forbidden("spec.ephemeralContainers", text))
            elif present[name] != container:
                text = f'existing ephemeral containers "{name}" may not be changed\\n'
                errors.append(forbidden("spec.ephemeralContainers", text))
        return errors

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []


class ResizeEndpoint:
    """Change the resources of running containers, and nothing else."""

    reset_fields = ("status",)

    def prepare_update(self, new: Document, old: Document, context: RequestContext) -> None:
        spec = dict(old["spec"])
        for name in ("containers", "initContainers"):
            resized = _resized(new["spec"].get(name) or [], old["spec"].get(name) or [])
            if resized:
                spec[name] = resized
        if "resources" in new["spec"]:
            spec["resources"] = new["spec"]["resources"]
        new["spec"], new["status"] = spec, old["status"]
        reset_metadata(new, old)
        _update_generation(new, old)

    def validate_update(self, new: Document, old: Document, context: RequestContext) -> list[FieldError]:
        return [*validate_pod(new), *_validate_resize(new, old)]

    def warnings_on_update(self, new: Document, old: Document) -> list[str]:
        return []


def _validate_resize(new: Document, old: Document) -> Iterator[FieldError]:
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        text = "Pod QOS Class may not change as a result of resizing"
        yield invalid("spec", new["status"].get("qosClass", ""), text)
    for name in ("containers", "initContainers"):
        containers, old_containers = new["spec"].get(name) or [], old["spec"].get(name) or []
        if [each["name"] for each in containers] != [each["name"] for each in old_containers]:
            yield forbidden(f"spec.{name}", "containers may not be renamed or reordered on resize")
            return
        for index, (container, old_container) in enumerate(zip(containers, old_containers, strict=True)):
            yield from _validate_removals(
                container["resources"], old_container["resources"], f"spec.{name}[{index}].resources"
            )
            if _immutable_amounts(container["resources"]) != _immutable_amounts(old_container["resources"]):
                yield forbidden("spec", "only cpu and memory resources are mutable")


def _validate_removals(new: dict[str, Any], old: dict[str, Any], path: str) -> Iterator[FieldError]:
    for kind in ("requests", "limits"):
        if old.get(kind, {}).keys() - new.get(kind, {}).keys():
            yield forbidden(f"{path}.{kind}", f"resource {kind} cannot be removed")


def _immutable_amounts(resources: dict[str, Any]) -> dict[str, Any]:
    amounts = {kind: resources.get(kind, {}) for kind in ("requests", "limits")}
    return {kind: {k: v for k, v in each.items() if k not in ("cpu", "memory")} for kind, each in amounts.items()}


def _resized(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the old containers with the new resources, or the new containers if their names differ."""
    if [each["name"] for each in new] != [each["name"] for each in old]:
        return new
    changed = []
    for container, old_container in zip(new, old, strict=True):
        unchanged = {key: value for key, value in old_container.items() if key != "resizePolicy"}
        policy = {"resizePolicy": container["resizePolicy"]} if "resizePolicy" in container else {}
        changed.append({**unchanged, "resources": container["resources"], **policy})
    return changed
