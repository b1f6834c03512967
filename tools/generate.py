"""Regenerate `konverge.k8s` from the OpenAPI documents of a real API server: `make generate`.

It starts the control plane for tests, reads its OpenAPI v3 documents and its discovery, and writes
`packages/konverge/src/konverge/k8s` and the schemas that tests compare it with.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from konverge.codegen import ApiDescription, package_files
from konverge.testing import ControlPlane

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "packages" / "konverge" / "src" / "konverge" / "k8s"
SCHEMAS = ROOT / "tests" / "data" / "openapi-v3-1.36.json.gz"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def main() -> None:
    with ControlPlane() as plane:
        description, version = describe(plane)
    write_package(package_files(description, server_version=version))
    SCHEMAS.parent.mkdir(parents=True, exist_ok=True)
    SCHEMAS.write_bytes(compressed_schemas(description))
    sys.stdout.write(f"{len(description.generated)} classes of Kubernetes {version}, {len(description.kinds)} kinds\n")


def describe(plane: ControlPlane) -> tuple[ApiDescription, str]:
    """Return the OpenAPI documents and discovery of a server, and its version."""
    paths = filter(_is_built_in, _get(plane, "/openapi/v3")["paths"])
    documents = {path: _get(plane, f"/openapi/v3/{path}") for path in paths}
    discoveries = [_get(plane, path, accept=AGGREGATED) for path in ("/api", "/apis")]
    return ApiDescription(documents, discoveries), _get(plane, "/version")["gitVersion"]


def write_package(files: dict[str, str]) -> None:
    """Replace the package; files of kinds that are no longer served are removed."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    for path, text in sorted(files.items()):
        target = PACKAGE / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for command in (["check", "--quiet", "--fix"], ["format", "--quiet"]):
        subprocess.run([Path(sys.executable).with_name("ruff"), *command, PACKAGE], check=True)


def compressed_schemas(description: ApiDescription) -> bytes:
    """Return the compressed schemas without descriptions. The same input gives the same bytes."""
    schemas = {name: _without_descriptions(schema) for name, schema in description.schemas.items()}
    text = json.dumps(schemas, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def _is_built_in(path: str) -> bool:
    """Report whether a document belongs to a built-in group, not to custom resources."""
    group = path.removeprefix("apis/").partition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


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
