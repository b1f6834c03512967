"""Untrusted YAML documents as plain objects.

Rules:

1. Only the safe loader is used, after a check of the parser's events: nesting and aliases are limited before any object
   is built, so a "billion laughs" file costs no more than a large one. (The recursion of the loader is C, unchecked.)
2. Plain scalars have the types that kubectl gives them: dates and `1:30` are strings.
3. Errors contain the position in the file and nothing of its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from konverge.client.access.locations import Location

__all__ = ["parse_document"]

MAX_DEPTH = 64
MAX_NODES = 500_000
"""The limit of values in a document with all aliases expanded: several thousand clusters."""

_REMOVED_TAGS = {
    "tag:yaml.org,2002:timestamp",
    "tag:yaml.org,2002:value",
    "tag:yaml.org,2002:int",
    "tag:yaml.org,2002:float",
}


class _Loader(yaml.CSafeLoader):
    """The safe loader without dates, base-60 numbers and the `=` tag."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the name and the form are the library's
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REMOVED_TAGS]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"(?i:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:e[-+]?[0-9]+)?|[-+]?\.inf|\.nan)\Z"),
    list("-+0123456789."),
)


def parse_document(data: bytes, location: Location) -> object:
    """Return the first document of a YAML stream, None when there is none.

    Raises: ConfigError, with line and column where there is one.
    """
    try:
        _check_shape(data, location)
        return _load_first(data)
    except yaml.MarkedYAMLError as error:
        raise location.error(_describe(error)) from None
    except yaml.YAMLError:
        raise location.error("not valid YAML: it contains bytes that are not text") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # The loader raises these for scalars that do not match their tag (`!!int x`), with the scalar in the text.
        raise location.error("not valid YAML: a value does not match its tag") from None


def _load_first(data: bytes) -> object:
    loader = _Loader(data)
    try:
        return loader.get_data()
    finally:
        loader.dispose()


def _describe(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    # Messages of the parser are constant; those of the constructor contain tags, which are content.
    constant = not isinstance(error, yaml.constructor.ConstructorError)
    what = error.problem if constant and error.problem else "a value has an unsupported type"
    return f"not valid YAML{where}: {what}"


def _check_shape(data: bytes, location: Location) -> None:
    """Raise ConfigError for nesting beyond the limit, recursive aliases, and more values than any real file has."""
    sizes: dict[str, int] = {}
    # The open collections: the anchor of each, and its number of nodes so far with all aliases expanded.
    nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in _events(data):
        if isinstance(event, yaml.CollectionStartEvent):
            nodes.append((event.anchor, 1))
            if len(nodes) > MAX_DEPTH:
                raise location.error(f"nested deeper than {MAX_DEPTH} levels")
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = nodes.pop()
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in nodes):
                raise location.error("an alias refers to a node that contains it")
            # The loader raises an error for an alias without an anchor, with its line.
            anchor, size = None, sizes.get(event.anchor or "", 1)
        else:
            anchor, size = getattr(event, "anchor", None), 1
        if anchor is not None:
            sizes[anchor] = size
        outer, total = nodes.pop()
        if total + size > MAX_NODES:
            raise location.error(f"it has more than {MAX_NODES} values with all aliases expanded")
        nodes.append((outer, total + size))


def _events(data: bytes) -> Iterator[yaml.Event]:
    for event in yaml.parse(data, Loader=_Loader):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        yield event
