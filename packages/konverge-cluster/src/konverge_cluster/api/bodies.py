"""Decode request bodies, JSON or YAML: duplicate keys are reported, and errors have the texts of the real server."""

from __future__ import annotations

import asyncio
import json
import math
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
import yaml
from yaml.scanner import ScannerError

from konverge_cluster.api import status_errors
from konverge_cluster.api.go_json import MAX_DEPTH, HugeNumber, JsonSyntaxError, duplicate_keys

__all__ = [
    "BODY_LIMIT",
    "JSON",
    "YAML",
    "BodyDecodeError",
    "ObjectDecodeError",
    "huge_number",
    "media_type",
    "parse_large_yaml",
    "read_body",
    "read_json",
    "read_yaml",
    "summary",
    "too_deep",
]

BODY_LIMIT: Final = 3 * 1024 * 1024
JSON: Final = "application/json"
YAML: Final = "application/yaml"

_SUMMARY_LENGTH: Final = 30
# Where a number may be too large for a float64: hundreds of digits, or an exponent with three digits.
_HUGE: Final = re.compile(rb"[\s:,\[]-?(?:[0-9]{309}|[0-9]+(?:\.[0-9]+)?[eE]\+?[0-9]{3})")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# With aliases a short YAML text can expand to a huge value.
_MAX_NODES: Final = 1_000_000
_INT_DIGITS: Final = 100
_LARGE_YAML: Final = 64 * 1024

_yaml_thread: Final = ThreadPoolExecutor(1, "konverge-yaml")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class BodyDecodeError(ValueError):
    """The body cannot be decoded; the message is the parser's."""


class ObjectDecodeError(BodyDecodeError):
    """The kind of the object in the body is known, but the object cannot be decoded."""

    def __init__(self, message: str, kind: str, api_version: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.api_version = api_version


def media_type(header: str) -> str:
    """Return the media type of a Content-Type header, without its parameters; JSON when there is none."""
    return header.partition(";")[0].strip().lower() or JSON


def read_json(body: bytes) -> tuple[Any, list[str]]:
    """Decode JSON; return the value and the strict decoding errors, such as `duplicate field "data.a"`.

    Raises: BodyDecodeError with the text of the real server's parser.
    """
    try:
        value = _decode(body)
    except RecursionError:
        raise BodyDecodeError("invalid character '{' exceeded max depth") from None
    except ValueError:
        return _read_leniently(body)
    if _HUGE.search(body):
        return _read_leniently(body)
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and too_deep(value):
        return _read_leniently(body)
    # A duplicate key that was dropped lowers the number of quotes by two. Escaped quotes would make the count wrong.
    if b"\\u" in body or body.count(b'"') != _encode(value).count(b'"'):
        return value, _duplicates(body.decode("utf-8", "replace"))
    return value, []


def _duplicates(text: str) -> list[str]:
    return [f'duplicate field "{path}"' for path in duplicate_keys(text)]


def _read_leniently(body: bytes) -> tuple[Any, list[str]]:
    """Decode what the fast decoder cannot: no JSON at all, bytes or surrogates that Go replaces, huge numbers."""
    text = body.decode("utf-8", "replace")
    try:
        errors = _duplicates(text)
    except JsonSyntaxError as error:
        raise BodyDecodeError(str(error)) from None
    return _replace_surrogates(json.loads(text, parse_int=_read_number, parse_float=_read_number)), errors


def _read_number(text: str) -> int | float:
    value = float(text)
    if math.isinf(value):
        return HugeNumber(text)
    return value if any(letter in text for letter in ".eE") else int(text)


def huge_number(body: bytes, value: Any) -> HugeNumber | None:
    """Return a number in a decoded body that no float64 can hold, or None.

    A field of a Go type rejects such a number itself; a value without a type must be rejected by its reader.
    """
    if not _HUGE.search(body):
        return None
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, HugeNumber):
            return each
        if isinstance(each, (dict, list)):
            pending.extend(each.values() if isinstance(each, dict) else each)
    return None


def _replace_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(each) for each in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(each) for key, each in value.items()}
    return value


def too_deep(value: Any) -> bool:
    """Report whether a value is nested too deeply or has too many elements for the server."""
    pending = [(value, 1)]
    count = 0
    while pending:
        each, depth = pending.pop()
        count += 1
        if isinstance(each, (dict, list)):
            if depth > MAX_DEPTH or count > _MAX_NODES:
                return True
            children = each.values() if isinstance(each, dict) else each
            pending.extend((child, depth + 1) for child in children)
    return False


class _ParsedYaml(bytes):
    """A YAML body with what `read_yaml` returns or raises for it."""

    result: tuple[Any, list[str]] | BodyDecodeError


async def parse_large_yaml(body: bytes) -> bytes:
    """Return the body; if it is large, with its value, for `read_yaml`.

    YAML takes about a second of CPU time for each megabyte. It is decoded in a thread, one body at a time, so that
    other requests are handled meanwhile.
    """
    if not _LARGE_YAML < len(body) <= BODY_LIMIT:
        return body
    parsed = _ParsedYaml(body)
    try:
        parsed.result = await asyncio.get_running_loop().run_in_executor(_yaml_thread, read_yaml, body)
    except BodyDecodeError as error:
        parsed.result = error
    return parsed


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Decode the first document of a YAML text into a JSON value; return it and the strict decoding errors.

    Raises: BodyDecodeError with the parser's message.
    """
    if isinstance(body, _ParsedYaml):
        if isinstance(body.result, BodyDecodeError):
            raise body.result
        return body.result
    if body[:1] == b"{":
        # Most YAML that programs send is JSON, which decodes ten times as fast.
        try:
            value, errors = read_json(body)
            if not errors:
                return value, []
        except BodyDecodeError:
            pass
    errors = []
    text = body.decode("utf-8", "replace")
    _check_depth(text)
    loader = _Loader(text, errors)
    try:
        value = loader.get_first()
        if too_deep(value):
            raise BodyDecodeError("yaml: document contains excessive aliasing")
        return _decode(_encode(value)), errors
    except RecursionError:
        raise BodyDecodeError("yaml: document contains excessive aliasing") from None
    except yaml.YAMLError as error:
        raise BodyDecodeError(_yaml_text(error)) from None
    finally:
        loader.dispose()


def _check_depth(text: str) -> None:
    """Reject nesting that would overflow the stack of the C library, which does not check it.

    Raises: BodyDecodeError.
    """
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
    message = getattr(error, "problem", None) or str(error)
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line = mark.line if mark is not None else 0
    if line and isinstance(error, ScannerError):
        line += 1
    line = line or (context.line if context is not None else 0)
    return f"yaml: line {line}: {message}" if line else f"yaml: {message}"


class _Loader(yaml.CSafeLoader):
    """A YAML loader with the server's rules: no dates, keys become strings, duplicate keys are reported."""

    def __init__(self, text: str, errors: list[str]) -> None:
        super().__init__(text)
        self._errors = errors

    def get_first(self) -> Any:
        """Return the value of the first document, None when there is none.

        Raises: BodyDecodeError when its aliases expand too much.
        """
        node = self.get_node() if self.check_node() else None
        if node is None:
            return None
        _AliasCounter().count(node)
        return self.construct_document(node)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: ARG002
        self.flatten_mapping(node)
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _key_text(self.construct_object(key_node, deep=True))
            if key in found:
                self._errors.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
            found[key] = self.construct_object(value_node, deep=True)
        return found


class _AliasCounter:
    """Counts the nodes of a document as if its aliases and merge keys were written out, without doing so.

    The rule is that of the real server's decoder: the larger a document is, the smaller the part that may come from
    aliases.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._open: set[int] = set()
        self._nodes = 0
        self._aliased = 0

    def count(self, node: yaml.Node, *, aliased: bool = False) -> None:
        self._nodes += 1
        self._aliased += aliased
        if self._aliased > 100 and self._nodes > 1000 and self._aliased / self._nodes > self._allowed_ratio():
            raise BodyDecodeError("yaml: document contains excessive aliasing")
        if isinstance(node, yaml.ScalarNode):
            return
        if id(node) in self._open:
            raise BodyDecodeError("yaml: document contains excessive aliasing")
        aliased = aliased or id(node) in self._seen
        self._seen.add(id(node))
        self._open.add(id(node))
        for child in node.value:
            for each in child if isinstance(child, tuple) else (child,):
                self.count(each, aliased=aliased)
        self._open.discard(id(node))

    def _allowed_ratio(self) -> float:
        low, high = 400_000, 4_000_000
        part = min(max(self._nodes - low, 0) / (high - low), 1)
        return 0.99 - part * (0.99 - 0.10)


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(key)


def _construct_int(loader: Any, node: Any) -> Any:
    """Return an integer; a float if it has more than 64 bits; the text if no float64 can hold it."""
    text = loader.construct_scalar(node).replace("_", "")
    if ":" in text:
        # Numbers to the base 60 are strings for the server.
        return loader.construct_scalar(node)
    if len(text) <= _INT_DIGITS:
        number = loader.construct_yaml_int(node)
        if -(2**63) <= number < 2**64:
            return number
    try:
        value = float(text)
    except ValueError:
        return loader.construct_scalar(node)
    return loader.construct_scalar(node) if math.isinf(value) else value


def _construct_float(loader: Any, node: Any) -> Any:
    """Return a float; the text if no float64 can hold it."""
    text = loader.construct_scalar(node)
    if ":" in text:
        return text
    value = loader.construct_yaml_float(node)
    return text if math.isinf(value) and "inf" not in text.lower() else value


_Loader.yaml_implicit_resolvers = {
    character: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for character, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _construct_map(loader: _Loader, node: Any) -> dict[Any, Any]:
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_map)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def summary(body: bytes) -> str:
    """Return the start of a body, in the form that the server uses in error messages."""
    if not body:
        return "<empty>"
    tail = " ..." if len(body) > _SUMMARY_LENGTH else ""
    prefix = body[:_SUMMARY_LENGTH]
    return (prefix.decode("utf-8", "replace") if body[:1] == b"{" else prefix.hex()) + tail


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
