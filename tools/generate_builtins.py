"""Make the data of the embedded control plane's built-in kinds anew: `python tools/generate_builtins.py`, by hand.

All of it is what a real Kubernetes says about itself: its Go types about how they read and write JSON
(`tools/structs`, run with the module of the control plane's programs), its API server about what it serves, the schemas
of that, and the columns of its tables.
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
    structs = _structs(resources)
    write(PROTOBUF_TYPES, protobuf_types(structs))
    write(DATA / "builtin-discovery.json.gz", resources)
    write(DATA / "builtin-structs.json.gz", structs_without_numbers(structs))
    write(DATA / "builtin-schemas.json.gz", _bare(schemas))
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
    """One resource as aggregated discovery has it, with what only the legacy document and tables tell."""
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    legacy = {each["name"]: each for each in _get(plane, root)["resources"]}[resource["resource"]]
    described = {"group": group, "version": version, **resource}
    if "storageVersionHash" in legacy:
        described["storageVersionHash"] = legacy["storageVersionHash"]
    if "list" in resource["verbs"]:
        path = f"{root}/{resource['resource']}"
        described["listKind"] = _get(plane, path)["kind"]
        described["columns"] = _get(plane, path, accept=TABLE)["columnDefinitions"]
    return described


def _structs(resources: list[dict[str, Any]]) -> Any:
    kinds = [each["responseKind"] | {"of": each} for each in resources]
    kinds += [inner["responseKind"] | {"of": each} for each in resources for inner in each.get("subresources", ())]
    names = {_api_version(kind, kind["of"]) + "/" + kind["kind"] for kind in kinds}
    done = subprocess.run(
        ["go", "run", STRUCTS, *sorted(names)], cwd=MODULE, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def protobuf_types(structs: Any) -> dict[str, Any]:
    """Return the table of the protobuf decoder: of each struct the fields that have protobuf numbers."""
    types = []
    for shape in structs["shapes"]:
        type_ = {key: value for key, value in shape.items() if key != "fields"}
        fields = [_protobuf_field(field) for field in shape.get("fields", ()) if field.get("numbers")]
        types.append(type_ | ({"fields": fields} if fields else {}))
    return {"kinds": structs["kinds"], "types": types}


def _protobuf_field(field: Any) -> dict[str, Any]:
    omit_empty = {"omitEmpty": True} if field.get("omitEmpty") else {}
    return {"key": field["key"], "numbers": field["numbers"], "type": field["shape"], **omit_empty}


def structs_without_numbers(structs: Any) -> Any:
    """Return the table of structs without the numbers that only protobuf needs."""
    shapes = [
        {
            key: [{k: v for k, v in field.items() if k != "numbers"} for field in value] if key == "fields" else value
            for key, value in shape.items()
        }
        for shape in structs["shapes"]
    ]
    return structs | {"shapes": shapes}


def _api_version(kind: dict[str, Any], resource: dict[str, Any]) -> str:
    group = kind.get("group") or resource["group"]
    version = kind.get("version") or resource["version"]
    return f"{group}/{version}" if group else version


def _schemas(plane: ControlPlane) -> dict[str, Any]:
    documents = [_get(plane, f"/openapi/v3/{path}") for path in sorted(_get(plane, "/openapi/v3")["paths"])]
    found: dict[str, Any] = {}
    for document in documents:
        found |= document.get("components", {}).get("schemas", {})
    return found


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called "description": only a text is one.
    return {key: _bare(value) for key, value in schema.items() if not (key == "description" and isinstance(value, str))}


def _get(plane: ControlPlane, path: str, *, accept: str = "application/json") -> Any:
    answer = plane.request("GET", path, headers={"Accept": accept})
    if answer.status != 200:
        raise SystemExit(f"GET {path}: the server answered {answer.status}")
    return answer.json()


if __name__ == "__main__":
    main()
