"""The command `konverge new`: write a project that passes its own tests and type checks."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from konverge.cli.output_files import write_files
from konverge.cli.targets import short_repr
from konverge.objects.names import dns_label_errors, dns_subdomain_errors

__all__ = ["new"]

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "gitignore": ".gitignore",
    "README.md": "README.md",
    "Dockerfile": "Dockerfile",
    "ci.yaml": ".github/workflows/ci.yaml",
    "init.py": "src/$package/__init__.py",
    "api.py": "src/$package/api.py",
    "reconciler.py": "src/$package/reconciler.py",
    "operator.py": "src/$package/operator.py",
    "sample.yaml": "samples/$singular.yaml",
    "test.py": "tests/test_$package.py",
}
"""The file of each template."""


def _name(text: str) -> str:
    if dns_label_errors(text) or not text[0].isalpha() or keyword.iskeyword(text):
        raise click.BadParameter(f"{short_repr(text)} is not a project name: write lower-case letters, digits and '-'")
    if text.replace("-", "_") in {*sys.stdlib_module_names, "konverge", "konverge_cluster"}:
        raise click.BadParameter(f"{short_repr(text)} is the name of another module: choose another")
    return text


def _kind(text: str) -> str:
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,50}", text):
        raise click.BadParameter(f"{short_repr(text)} is not a kind: write it in CamelCase, such as WebApp")
    return text


def _group(text: str) -> str:
    if dns_subdomain_errors(text) or "." not in text:
        raise click.BadParameter(f"{short_repr(text)} is not an API group: write a domain, such as example.com")
    return text


@click.command(context_settings={"show_default": True})
@click.argument("name", type=_name)
@click.option("--kind", type=_kind, help="Kind of the custom resource; from NAME by default.")
@click.option("--group", type=_group, default="example.com", help="API group of the custom resource.")
def new(name: str, kind: str | None, group: str) -> None:
    """Create a project for an operator in the folder NAME: API, reconciler, tests, samples, Dockerfile, CI.

    Example: konverge new shop-operator --kind Shop --group example.com
    """
    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"{short_repr(name)} already exists and is not an empty folder")
    write_files({folder / path: text for path, text in _texts(name, kind or _kind_of(name), group).items()})
    click.echo(f"created {name}: cd {name}, and see README.md")


def _kind_of(name: str) -> str:
    """Return a kind for a project: shop-operator is about Shop."""
    words = name.removesuffix("-operator").split("-")
    return _kind("".join(word.capitalize() for word in words))


def _texts(name: str, kind: str, group: str) -> dict[str, str]:
    """Return the text of each file."""
    from konverge.schema.names import plural_of

    singular = kind.lower()
    values = {
        "name": name,
        "package": name.replace("-", "_"),
        "kind": kind,
        "singular": singular,
        "plural": plural_of(kind),
        "group": group,
    }
    templates = files("konverge.cli.new_operator") / "templates"
    return {
        Template(path).substitute(values): Template((templates / f"{source}.txt").read_text("utf-8")).substitute(values)
        for source, path in _FILES.items()
    }
