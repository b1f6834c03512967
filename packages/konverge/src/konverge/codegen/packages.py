"""All files of `konverge.k8s` as texts: what `make generate` writes."""

from __future__ import annotations

from konverge.codegen.openapi import ApiDescription
from konverge.codegen.shapes import ModuleShape
from konverge.codegen.source import source_of
from konverge.objects.kinds import Kind, api_version_of

__all__ = ["package_files"]

_MADE = (
    "Made by `make generate` from the OpenAPI v3 description that the server publishes (Kubernetes, Apache-2.0; see "
    "NOTICE). Do not edit."
)


def package_files(description: ApiDescription, *, server_version: str) -> dict[str, str]:
    """Map each path under `konverge/k8s` to its text."""
    modules = description.modules()
    files = {"__init__.py": _front(modules, server_version)}
    for name, module in modules.items():
        group, _, version = name.partition(".")
        module.doc = f"{_subject(name, module)}, as Kubernetes {server_version} publishes it.\n\n{_MADE}"
        files[f"{group}/{version}.py"] = source_of(module)
        files[f"{group}/__init__.py"] = _package(group, modules)
    return files


def _front(modules: dict[str, ModuleShape], server_version: str) -> str:
    lines = [
        f'"""The built-in kinds of Kubernetes {server_version}, generated; import the module of the group you need.',
        "",
        "    from konverge.k8s.apps.v1 import Deployment",
        "",
        "Nothing is imported by this package itself. The modules are:",
        "",
        *(f"- `konverge.k8s.{name}`: {_subject(name, module)}" for name, module in modules.items()),
        "",
        "Attributes are spelled in snake case. Lists and maps are empty when absent; other optional fields are None.",
        "A `status` is always there to be read, and so is a `spec` in which nothing is required.",
        '"""',
    ]
    return "\n".join(lines) + "\n"


def _package(group: str, modules: dict[str, ModuleShape]) -> str:
    names = " and ".join(f"`konverge.k8s.{name}`" for name in modules if name.partition(".")[0] == group)
    return f'"""The generated kinds of one group: import {names}."""\n'


def _subject(name: str, module: ModuleShape) -> str:
    """The API group and version that a module is about, as they stand in `apiVersion`."""
    served = {api_version_of(kind.group, kind.version) for kind in _kinds(module)}
    if served:
        return f"The API {' and '.join(sorted(served))}"
    return "What the APIs share" if name.startswith("meta.") else f"What is shared of {name}"


def _kinds(module: ModuleShape) -> list[Kind]:
    return [shape.kind for shape in module.classes if shape.kind is not None]
