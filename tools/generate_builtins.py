"""Regenerate the data of the built-in kinds: `python tools/generate_builtins.py`, run by hand.

All of it comes from a real Kubernetes. `tools/structs`, run in the Go module of the control plane's programs, prints
how the Go types decode and encode JSON and protobuf. The API server provides discovery, the OpenAPI schemas, the
columns of its tables and the default roles.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from konverge.testing import ControlPlane

ROOT = Path(__file__).parent.parent
DATA = ROOT / "packages" / "konverge-cluster" / "src" / "konverge_cluster" / "data"
PROTOBUF_TYPES = ROOT / "packages" / "konverge" / "src" / "konverge" / "wire" / "protobuf_types.json.gz"
MODULE = ROOT / "packages" / "konverge" / "src" / "konverge" / "testing" / "programs"
STRUCTS = ROOT / "tools" / "structs" / "main.go"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def main() -> None:
    with ControlPlane() as plane:
        discovery = [group for path in ("/api", "/apis") for group in _get(plane, path, accept=AGGREGATED)["items"]]
        resources = [_resource(plane, *each) for each in _served(discovery)]
        schemas = _schemas(plane)
        roles = default_roles(plane)
    structs = _structs(resources)
    write(PROTOBUF_TYPES, protobuf_types(structs))
    write(DATA / "builtin-roles.json.gz", roles)
    write(DATA / "builtin-discovery.json.gz", resources)
    write(DATA / "builtin-structs.json.gz", json_types(structs))
    write(DATA / "builtin-schemas.json.gz", _without_descriptions(schemas))
    write(DATA / "builtin-openapi.json.gz", schemas)


def write(target: Path, content: Any) -> None:
    """Write the content as compressed JSON. The same content gives the same bytes."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(text, mtime=0))
    sys.stdout.write(f"{target.relative_to(ROOT)}: {len(text)} bytes, {target.stat().st_size} compressed\n")


def _served(discovery: list[Any]) -> list[tuple[str, str, Any]]:
    return [
        (group["metadata"].get("name", ""), version["version"], resource)
        for group in discovery
        for version in group["versions"]
        for resource in version["resources"]
    ]


def _resource(plane: ControlPlane, group: str, version: str, resource: Any) -> dict[str, Any]:
    """Return one resource of aggregated discovery, with facts that only legacy discovery and tables contain."""
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    legacy = {each["name"]: each for each in _get(plane, root)["resources"]}[resource["resource"]]
    info = {"group": group, "version": version, **resource}
    if "storageVersionHash" in legacy:
        info["storageVersionHash"] = legacy["storageVersionHash"]
    if "list" in resource["verbs"]:
        path = f"{root}/{resource['resource']}"
        info["listKind"] = _get(plane, path)["kind"]
        info["columns"] = _get(plane, path, accept=TABLE)["columnDefinitions"]
    return info


def default_roles(plane: ControlPlane) -> dict[str, list[Any]]:
    """Return the roles and bindings that the API server creates when it starts, by plural."""
    plurals = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    lists = {plural: _get(plane, f"/apis/rbac.authorization.k8s.io/v1/{plural}")["items"] for plural in plurals}
    for item in (item for items in lists.values() for item in items):
        item["metadata"] = _without(item["metadata"], "uid", "resourceVersion", "creationTimestamp", "managedFields")
    return lists


def _structs(resources: list[dict[str, Any]]) -> Any:
    kinds = [each["responseKind"] | {"of": each} for each in resources]
    kinds += [inner["responseKind"] | {"of": each} for each in resources for inner in each.get("subresources", ())]
    names = {_api_version(kind, kind["of"]) + "/" + kind["kind"] for kind in kinds}
    process = subprocess.run(
        ["go", "run", STRUCTS, *sorted(names)], cwd=MODULE, capture_output=True, text=True, check=True
    )
    return json.loads(process.stdout)


def protobuf_types(structs: Any) -> dict[str, Any]:
    """Return the table of the protobuf decoder: of each struct the fields that have protobuf numbers."""
    types = []
    for type_ in structs["types"]:
        fields = [_protobuf_field(field) for field in type_.get("fields", ()) if field.get("numbers")]
        types.append(_without(type_, "fields") | ({"fields": fields} if fields else {}))
    return {"kinds": structs["kinds"], "types": types}


def _protobuf_field(field: Any) -> dict[str, Any]:
    return _without(field, "omitZero", "through")


def json_types(structs: Any) -> dict[str, Any]:
    """Return the table of the JSON decoder: all fields, without protobuf numbers."""
    types = []
    for type_ in structs["types"]:
        fields = [_without(field, "numbers") for field in type_.get("fields", ())]
        types.append(_without(type_, "fields") | ({"fields": fields} if fields else {}))
    return {"kinds": structs["kinds"], "types": types}


def _without(mapping: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _api_version(kind: dict[str, Any], resource: dict[str, Any]) -> str:
    group = kind.get("group") or resource["group"]
    version = kind.get("version") or resource["version"]
    return f"{group}/{version}" if group else version


def _schemas(plane: ControlPlane) -> dict[str, Any]:
    documents = [_get(plane, f"/openapi/v3/{path}") for path in sorted(_get(plane, "/openapi/v3")["paths"])]
    schemas: dict[str, Any] = {}
    for document in documents:
        schemas |= document.get("components", {}).get("schemas", {})
    return schemas


def _without_descriptions(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_descriptions(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called "description"; a description is always a string.
    return {
        key: _without_descriptions(value)
        for key, value in schema.items()
        if not (key == "description" and isinstance(value, str))
    }


def _get(plane: ControlPlane, path: str, *, accept: str = "application/json") -> Any:
    response = plane.request("GET", path, headers={"Accept": accept})
    if response.status != 200:
        raise SystemExit(f"GET {path}: status {response.status}")
    return response.json()


if __name__ == "__main__":
    main()
