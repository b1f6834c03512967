"""From the bytes of a request to a document: JSON or YAML, duplicate keys noticed, status_errors in the server's words."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec
import yaml

from konverge_cluster.api import status_errors
from konverge_cluster.api.go_json import MAX_DEPTH, JsonSyntaxError, duplicate_keys

__all__ = [
    "BODY_LIMIT",
    "JSON",
    "YAML",
    "BodyDecodeError",
    "ObjectDecodeError",
    "media_type",
    "read_body",
    "read_json",
    "read_yaml",
    "summary",
    "too_deep",
]

BODY_LIMIT: Final = 3 * 1024 * 1024
JSON: Final = "application/json"
YAML: Final = "application/yaml"

_SHOWN: Final = 30
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Aliases let a short YAML text stand for a huge value.
_MAX_NODES: Final = 1_000_000

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class BodyDecodeError(ValueError):
    """The text cannot be read; the message is the parser's."""


class ObjectDecodeError(BodyDecodeError):
    """The text says what kind of object it holds, and that object cannot be read."""

    def __init__(self, message: str, kind: str, api_version: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.api_version = api_version


def media_type(header: str) -> str:
    """The media type of a Content-Type header, without its parameters; JSON when there is none."""
    return header.partition(";")[0].strip().lower() or JSON


def read_json(body: bytes) -> tuple[Any, list[str]]:
    """Decode JSON; return the value and what a strict reader objects to: `duplicate field "data.a"`.

    Raises: BodyDecodeError with the text of the real server's parser.
    """
    try:
        value = _decode(body)
    except RecursionError:
        raise BodyDecodeError("invalid character '{' exceeded max depth") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _read_slowly(body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and too_deep(value):
        return _read_slowly(body)
    # A key that was lost took its two quotes along. Written escapes of a quote would upset the count.
    if b"\\u" in body or body.count(b'"') != _encode(value).count(b'"'):
        return value, _duplicates(body.decode("utf-8", "replace"))
    return value, []


def _duplicates(text: str) -> list[str]:
    return [f'duplicate field "{path}"' for path in duplicate_keys(text)]


def _read_slowly(body: bytes) -> tuple[Any, list[str]]:
    """Read what the fast reader refuses: either it is no JSON, or it has bytes or surrogates that Go replaces."""
    text = body.decode("utf-8", "replace")
    try:
        problems = _duplicates(text)
    except JsonSyntaxError as fault:
        raise BodyDecodeError(str(fault)) from None
    value = json.loads(text)
    return _decode(_encode(_without_surrogates(value))), problems


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    return value


def too_deep(value: Any) -> bool:
    """Whether a value nests deeper, or holds more, than the server can handle."""
    waiting = [(value, 1)]
    seen = 0
    while waiting:
        each, depth = waiting.pop()
        seen += 1
        if isinstance(each, (dict, list)):
            if depth > MAX_DEPTH or seen > _MAX_NODES:
                return True
            children = each.values() if isinstance(each, dict) else each
            waiting.extend((child, depth + 1) for child in children)
    return False


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Decode the first document of a YAML text, as JSON would have it.

    Raises: BodyDecodeError with what the parser says.
    """
    if body[:1] == b"{":
        # Most YAML that machines send is JSON, which is read ten times as fast.
        try:
            value, problems = read_json(body)
            if not problems:
                return value, []
        except BodyDecodeError:
            pass
    problems = []
    text = body.decode("utf-8", "replace")
    _check_depth(text)
    loader = _Loader(text, problems)
    try:
        value = loader.get_single_or_first()
        if too_deep(value):
            raise BodyDecodeError("yaml: document contains excessive aliasing")
        return _decode(_encode(value)), problems
    except RecursionError:
        raise BodyDecodeError("yaml: document contains excessive aliasing") from None
    except yaml.YAMLError as error:
        raise BodyDecodeError(_yaml_text(error)) from None
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Look for nesting that would overflow the stack of the C library, which does not look itself."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise BodyDecodeError("yaml: document contains excessive nesting")
    except yaml.YAMLError as error:
        raise BodyDecodeError(_yaml_text(error)) from None


def _yaml_text(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line = mark.line if mark is not None else 0
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    line = line or (context.line if context is not None else 0)
    return f"yaml: line {line}: {problem}" if line else f"yaml: {problem}"


class _Loader(yaml.CSafeLoader):
    """YAML as the server reads it: no dates, keys become strings, a key that repeats is noted."""

    def __init__(self, text: str, problems: list[str]) -> None:
        super().__init__(text)
        self._problems = problems

    def get_single_or_first(self) -> Any:
        return self.get_data() if self.check_data() else None  # type: ignore[no-untyped-call]

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
        self.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _key_text(self.construct_object(key_node, deep=True))
            if key in found:
                self._problems.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
            found[key] = self.construct_object(value_node, deep=True)
        return found


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _construct_map(loader: _Loader, node: Any) -> dict[Any, Any]:
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_map)


def summary(body: bytes) -> str:
    """Show the beginning of a body as the server does in its status_errors."""
    if not body:
        return "<empty>"
    tail = " ..." if len(body) > _SHOWN else ""
    shown = body[:_SHOWN]
    return (shown.decode("utf-8", "replace") if body[:1] == b"{" else shown.hex()) + tail


def read_body(content_type: str, body: bytes, accepted: tuple[str, ...]) -> tuple[Any, list[str]]:
    """Decode a body by its content type.

    Raises: BodyDecodeError; StatusError 413 for a body over the limit, 415 for a media type that is not accepted.
    """
    if len(body) > BODY_LIMIT:
        raise status_errors.too_large(f"limit is {BODY_LIMIT}")
    kind = media_type(content_type)
    if kind == JSON:
        return read_json(body)
    if kind == YAML:
        return read_yaml(body)
    raise status_errors.unsupported_media_type(accepted)
