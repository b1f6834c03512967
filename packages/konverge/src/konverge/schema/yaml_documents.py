"""YAML documents as kubectl users write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

__all__ = ["dump_documents"]


def dump_documents(documents: Iterable[Any]) -> str:
    """Return a stream of documents: no aliases, and multi-line strings as blocks."""
    return str(yaml.dump_all(documents, Dumper=_YamlWriter, sort_keys=False, allow_unicode=True, width=120))


class _YamlWriter(yaml.SafeDumper):
    """Writes no aliases, and multi-line strings as blocks."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _represent_str(writer: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_YamlWriter.add_representer(str, _represent_str)
