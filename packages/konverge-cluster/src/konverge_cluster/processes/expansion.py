"""Text of a container: `$(VAR)` as in Kubernetes, and paths of volumes where there are no mount namespaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["expand", "substitute_paths"]

_REFERENCE: Final = re.compile(r"\$\$|\$\(([^)\s]*)\)")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(VAR)` by the value of a variable; an unknown one stays, and `$$` is a plain `$`."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def substitute_paths(text: str, paths: Mapping[str, str]) -> str:
    """Replace the paths of mounts by those of the host, where they are whole components."""
    if not paths:
        return text
    longest_first = sorted(paths, key=len, reverse=True)
    pattern = "|".join(re.escape(path) for path in longest_first)
    return re.sub(rf"(?<![\w./-])(?:{pattern})(?![\w.-])", lambda match: paths[match[0]], text)
