"""JSON patch (RFC 6902), with the deviations of the real server.

Rules that differ from the RFC, as on the real server:

1. The text before the first `/` of a path is ignored, so `data/k` means the key `k` of the root.
2. `replace` sets a missing key. `copy` from a missing key copies null. `add`, `replace` and `copy` without a value
   write null.
3. `test` for null succeeds where the key is missing. Numbers are equal only in the same notation: 1 is not 1.0.
4. A negative index counts from the end; in `add`, -1 is the position after the last item.
5. A failed operation is a 422 without the reason, and the object is unchanged. The reason is the `__cause__` of the
   error, with the text of the real server, which shows it when a webhook's patch fails.

The document and the patch are never changed; the result shares the parts that no operation changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from konverge_cluster.patches.errors import PatchError, bad_request, invalid_patch, too_large

__all__ = ["MAX_OPERATIONS", "apply_json_patch", "read_json_patch", "unknown_operation_fields"]

MAX_OPERATIONS = 10_000

_MAX_COPIED_BYTES = 3 * 1024 * 1024
_MAX_DIGITS = 19

_encode = msgspec.json.Encoder().encode
_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_ABSENT: Any = object()
_STRICT_TYPES = ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
_UNCHECKED_TYPES = ("jsonpatch.Patch", "jsonpatch.Operation")
_KINDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


class _OperationError(Exception):
    """An operation does not apply to the document; the text is the reason."""


class _MissingPath(Exception):
    """A pointer does not exist in the document; `name` is the pointer's field in the operation, `path` or `from`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _InvalidKey(Exception):
    """The container of a pointer has no such key or index; the text is the reason."""


def read_json_patch(patch: Any, *, ignore_validation: bool = False) -> list[dict[str, Any]]:
    """Check that a decoded body is a JSON patch; return its operations.

    `ignore_validation` is for requests with ``fieldValidation=Ignore``: the real server then checks an operation only
    when it runs it, and has other type names in its messages.

    Raises: PatchError 400 when it is not a list of operations, 413 when there are more than `MAX_OPERATIONS`.
    """
    list_type, operation_type = _UNCHECKED_TYPES if ignore_validation else _STRICT_TYPES
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, f"Go value of type {list_type}", ignore_validation=ignore_validation)
    for operation in patch:
        if not isinstance(operation, dict | None):
            raise _undecodable(operation, f"Go value of type {operation_type}", ignore_validation=ignore_validation)
        if not ignore_validation:
            _check_strings(operation or {})
    if len(patch) > MAX_OPERATIONS:
        raise too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}")
    return [operation or {} for operation in patch]


def apply_json_patch(document: Any, patch: Any, *, ignore_validation: bool = False) -> Any:
    """Apply a decoded JSON patch; return the new document.

    Raises: PatchError as `read_json_patch`, and 422 when an operation does not apply.
    """
    state = _State(document)
    try:
        for operation in read_json_patch(patch, ignore_validation=ignore_validation):
            _Step(state, operation).run()
    except _OperationError as error:
        raise invalid_patch() from error
    return state.root[""]


def unknown_operation_fields(patch: Any) -> list[str]:
    """Return the unknown fields of operations, as the texts of the real server's warnings and strict errors."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(patch if isinstance(patch, list) else ())
        for name in (operation if isinstance(operation, dict) else ())
        if name not in ("op", "path", "from", "value")
    ]


def _check_strings(operation: dict[str, Any]) -> None:
    for name in ("op", "path", "from"):
        if not isinstance(operation.get(name), str | None):
            raise _undecodable(
                operation[name], f"Go struct field jsonPatchOp.{name} of type string", ignore_validation=False
            )


def _undecodable(value: Any, target: str, *, ignore_validation: bool) -> PatchError:
    text = f"json: cannot unmarshal {_KINDS[type(value)]} into {target}"
    return bad_request(text if ignore_validation else f"error decoding patch: {text}")


class _State:
    """What the operations of a patch share: the document, which is the value of the empty key of `root`.

    A container is copied when it is first changed. `copies` has the ids of the copies, which later operations change in
    place. `copied_bytes` is what all `copy` operations have copied: a few of them can double a document many times.
    """

    def __init__(self, document: Any) -> None:
        self.root = {"": document}
        self.copies = {id(self.root)}
        self.copied_bytes = 0

    def count_copy(self, value: Any) -> None:
        """Count a copied value.

        Raises: _OperationError when the patch copies more than the server allows.
        """
        self.copied_bytes += len(_encode(value))
        if self.copied_bytes > _MAX_COPIED_BYTES:
            text = f"the accumulated size increase of copy is {self.copied_bytes}"
            raise _OperationError(f"Unable to complete the copy, {text}, exceeding the limit {_MAX_COPIED_BYTES}")


class _Step:
    """One operation on the document."""

    def __init__(self, state: _State, operation: dict[str, Any]) -> None:
        self._state = state
        self._root = state.root
        self._copies = state.copies
        self._operation = operation

    def run(self) -> None:
        kinds: dict[str, Callable[[], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }
        op = self._operation.get("op")
        kind = op if isinstance(op, str) else ""
        if kind not in kinds:
            raise _OperationError(f"Unexpected kind: {kind or 'unknown'}")
        try:
            kinds[kind]()
        except _MissingPath as error:
            raise _OperationError(self._missing_path_text(kind, error.name)) from None
        except _InvalidKey as error:
            raise _OperationError(self._key_text(kind, str(error))) from None

    def _missing_path_text(self, kind: str, name: str) -> str:
        pointer = self._operation.get(name)
        if pointer is None:
            return f"{kind} operation failed to decode {name}: missing value"
        if kind in ("move", "copy"):
            shown = f"doc is missing {'from' if name == 'from' else 'destination'} path: {pointer}"
        elif kind == "test":
            shown = f"is missing path: {pointer}"
        else:
            shown = f"doc is missing path: {pointer}" if kind == "replace" else f'doc is missing path: "{pointer}"'
        return f"{kind} operation does not apply: {shown}: missing value"

    def _key_text(self, kind: str, error: str) -> str:
        path = self._operation.get("path")
        if kind == "replace":
            return f"replace operation does not apply: doc is missing key: {path}: missing value"
        if kind == "copy":
            return f"error in copy for from: '{self._operation.get('from')}': {error}"
        return f"error in {kind} for path: '{path}': {error}"

    @property
    def _value(self) -> Any:
        return self._operation.get("value")

    def _add(self) -> None:
        _insert(*self._container_of("path"), self._value)

    def _remove(self) -> None:
        _delete(*self._container_of("path"))

    def _replace(self) -> None:
        if self._pointer("path") == "":
            if not isinstance(self._value, dict | list):
                raise _OperationError("replace operation value must be object or array: %!w(<nil>)")
            self._root[""] = self._value
            return
        container, key = self._container_of("path")
        if isinstance(container, list):
            container[_index(container, key)] = self._value
        else:
            container[key] = self._value

    def _move(self) -> None:
        container, key = self._container_of("from")
        value = _read(container, key)
        _delete(container, key)
        _insert(*self._container_of("path"), value)

    def _copy(self) -> None:
        source, key = self._container_of("from")
        value = _read(source, key)
        # The value is now in two places. A later change of one must not change the other, so it must be copied again.
        self._forget_copies(value)
        container, key = self._container_of("path")
        copied = None if value is _ABSENT else value
        self._state.count_copy(copied)
        _insert(container, key, copied)

    def _test(self) -> None:
        pointer = self._pointer("path")
        found = self._root[""] if pointer == "" else _read(*self._container_of("path"))
        if not _same(None if found is _ABSENT else found, self._value):
            raise _OperationError(f"testing value {pointer} failed: test failed")

    def _pointer(self, name: str) -> str:
        pointer = self._operation.get(name)
        if not isinstance(pointer, str):
            raise _MissingPath(name)
        return pointer

    def _container_of(self, name: str) -> tuple[Any, str]:
        """Return the container of a pointer, which may be changed in place, and the last key."""
        tokens = self._pointer(name).split("/")
        if len(tokens) < 2:
            raise _MissingPath(name)
        keys = [token.replace("~1", "/").replace("~0", "~") for token in tokens[1:]]
        try:
            container = self._copy_on_write(self._root, "")
            for key in keys[:-1]:
                container = self._copy_on_write(
                    container, key if isinstance(container, dict) else _index(container, key)
                )
        except (KeyError, _InvalidKey):
            raise _MissingPath(name) from None
        return container, keys[-1]

    def _copy_on_write(self, container: Any, key: Any) -> Any:
        inner = container[key]
        if not isinstance(inner, dict | list):
            raise _InvalidKey(f"{key} holds a single value")
        if id(inner) not in self._copies:
            inner = container[key] = inner.copy()
            self._copies.add(id(inner))
        return inner

    def _forget_copies(self, value: Any) -> None:
        self._copies.discard(id(value))
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                self._forget_copies(inner)


def _index(container: list[Any], key: str, *, extra: int = 0) -> int:
    """Parse an index of a list; `extra` 1 allows the position after the last item."""
    if not _NUMBER.match(key):
        raise _InvalidKey(f'strconv.Atoi: parsing "{key}": invalid syntax')
    if len(key.lstrip("+-0")) > _MAX_DIGITS:
        raise _InvalidKey(f'strconv.Atoi: parsing "{key}": value out of range')
    index, size = int(key), len(container) + extra
    if not -size <= index < size:
        raise _InvalidKey(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % size


def _read(container: Any, key: str) -> Any:
    if isinstance(container, list):
        return container[_index(container, key)]
    return container.get(key, _ABSENT)


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(container, key, extra=1), value)


def _delete(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key)]
    elif key in container:
        del container[key]
    else:
        raise _InvalidKey(f"Unable to remove nonexistent key: {key}: missing value")


def _same(operation_type: Any, other: Any) -> bool:
    if type(operation_type) is not type(other):
        return False
    if isinstance(operation_type, dict):
        return operation_type.keys() == other.keys() and all(
            _same(value, other[key]) for key, value in operation_type.items()
        )
    if isinstance(operation_type, list):
        return len(operation_type) == len(other) and all(map(_same, operation_type, other))
    return bool(operation_type == other)
