"""JSON patch (RFC 6902), with the leniencies of the real server.

Rules that differ from the RFC, because clients meet them:

1. The text before the first `/` of a path is ignored, so `data/k` means the key `k` of the root.
2. `replace` sets a key that is not there. `copy` from a key that is not there copies null. `add`, `replace` and `copy`
   without a value write null.
3. `test` for null passes where the key is missing. Numbers are equal only in the same notation: 1 is not 1.0.
4. A negative index counts from the end; in `add`, -1 is the place after the last item.
5. A failing operation is 422 without a word on what failed, and the object stays as it was. What failed is the cause
   of the error, in the words of the real server, which shows it when a webhook's patch fails.

The document and the patch are never changed; the result shares what no operation touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from konverge_cluster.patches.errors import PatchError, bad_request, invalid_patch, too_large

__all__ = ["MAX_OPERATIONS", "apply_json_patch", "read_json_patch", "unknown_operation_fields"]

MAX_OPERATIONS = 10_000

_NUMBER = re.compile(r"[+-]?[0-9]+\Z")
_ABSENT: Any = object()
_STRICT_TYPES = ("[]handlers.jsonPatchOp", "handlers.jsonPatchOp")
_UNCHECKED_TYPES = ("jsonpatch.Patch", "jsonpatch.Operation")
_KINDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


class _OperationError(Exception):
    """An operation does not fit the document; the text says why."""


class _MissingPath(Exception):
    """A pointer leads into nothing; `name` says which of the operation's two pointers."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _InvalidKey(Exception):
    """A pointer leads into a container that has no such place; the text says why."""


def read_json_patch(patch: Any, *, ignore_validation: bool = False) -> list[dict[str, Any]]:
    """Check that a decoded body is a JSON patch and give its operations.

    `lenient` is for requests with ``fieldValidation=Ignore``: the real server then looks into an operation only when it
    is its turn, and has other names for its types.

    Raises: PatchError 400 when it is no list of operations, 413 when there are more than `MAX_OPERATIONS`.
    """
    whole, one = _UNCHECKED_TYPES if ignore_validation else _STRICT_TYPES
    if patch is None:
        return []
    if not isinstance(patch, list):
        raise _undecodable(patch, f"Go value of type {whole}", ignore_validation=ignore_validation)
    for operation in patch:
        if not isinstance(operation, dict | None):
            raise _undecodable(operation, f"Go value of type {one}", ignore_validation=ignore_validation)
        if not ignore_validation:
            _check_strings(operation or {})
    if len(patch) > MAX_OPERATIONS:
        raise too_large(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}")
    return [operation or {} for operation in patch]


def apply_json_patch(document: Any, patch: Any, *, ignore_validation: bool = False) -> Any:
    """Apply a decoded JSON patch and give the new document.

    Raises: PatchError as `read_json_patch`, and 422 when an operation does not fit.
    """
    holder = {"": document}
    own = {id(holder)}
    try:
        for operation in read_json_patch(patch, ignore_validation=ignore_validation):
            _Step(holder, own, operation).run()
    except _OperationError as misfit:
        raise invalid_patch() from misfit
    return holder[""]


def unknown_operation_fields(patch: Any) -> list[str]:
    """List the fields that no operation has, in the words of the real server's warnings and strict errors."""
    return [
        f'json patch unknown field "[{place}].{name}"'
        for place, operation in enumerate(patch if isinstance(patch, list) else ())
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


class _Step:
    """One operation on the document that `holder` holds under the empty key.

    A container is copied when it is first changed; `own` knows the copies, which later steps change in place.
    """

    def __init__(self, holder: dict[str, Any], own: set[int], operation: dict[str, Any]) -> None:
        self._holder = holder
        self._own = own
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
        said = self._operation.get("op")
        kind = said if isinstance(said, str) else ""
        if kind not in kinds:
            raise _OperationError(f"Unexpected kind: {kind or 'unknown'}")
        try:
            kinds[kind]()
        except _MissingPath as nowhere:
            raise _OperationError(self._nowhere_text(kind, nowhere.name)) from None
        except _InvalidKey as fault:
            raise _OperationError(self._key_text(kind, str(fault))) from None

    def _nowhere_text(self, kind: str, name: str) -> str:
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

    def _key_text(self, kind: str, fault: str) -> str:
        path = self._operation.get("path")
        if kind == "replace":
            return f"replace operation does not apply: doc is missing key: {path}: missing value"
        if kind == "copy":
            return f"error in copy for from: '{self._operation.get('from')}': {fault}"
        return f"error in {kind} for path: '{path}': {fault}"

    @property
    def _value(self) -> Any:
        return self._operation.get("value")

    def _add(self) -> None:
        _insert(*self._place("path"), self._value)

    def _remove(self) -> None:
        _delete(*self._place("path"))

    def _replace(self) -> None:
        if self._pointer("path") == "":
            if not isinstance(self._value, dict | list):
                raise _OperationError("replace operation value must be object or array: %!w(<nil>)")
            self._holder[""] = self._value
            return
        container, key = self._place("path")
        if isinstance(container, list):
            container[_index(container, key)] = self._value
        else:
            container[key] = self._value

    def _move(self) -> None:
        container, key = self._place("from")
        value = _read(container, key)
        _delete(container, key)
        _insert(*self._place("path"), value)

    def _copy(self) -> None:
        source, key = self._place("from")
        value = _read(source, key)
        # What is now in two places must not be changed in both through the copy that this patch owns.
        self._disown(value)
        _insert(*self._place("path"), None if value is _ABSENT else value)

    def _test(self) -> None:
        pointer = self._pointer("path")
        found = self._holder[""] if pointer == "" else _read(*self._place("path"))
        if not _same(None if found is _ABSENT else found, self._value):
            raise _OperationError(f"testing value {pointer} failed: test failed")

    def _pointer(self, name: str) -> str:
        pointer = self._operation.get(name)
        if not isinstance(pointer, str):
            raise _MissingPath(name)
        return pointer

    def _place(self, name: str) -> tuple[Any, str]:
        """Find the container that a pointer leads into, ready to be changed, and the last key."""
        tokens = self._pointer(name).split("/")
        if len(tokens) < 2:
            raise _MissingPath(name)
        keys = [token.replace("~1", "/").replace("~0", "~") for token in tokens[1:]]
        try:
            container = self._changeable(self._holder, "")
            for key in keys[:-1]:
                container = self._changeable(container, key if isinstance(container, dict) else _index(container, key))
        except (KeyError, _InvalidKey):
            raise _MissingPath(name) from None
        return container, keys[-1]

    def _changeable(self, container: Any, key: Any) -> Any:
        inner = container[key]
        if not isinstance(inner, dict | list):
            raise _InvalidKey(f"{key} holds a single value")
        if id(inner) not in self._own:
            inner = container[key] = inner.copy()
            self._own.add(id(inner))
        return inner

    def _disown(self, value: Any) -> None:
        self._own.discard(id(value))
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                self._disown(inner)


def _index(container: list[Any], key: str, *, room: int = 0) -> int:
    """Read an index of the list; `room` 1 allows the place after the last item."""
    if not _NUMBER.match(key):
        raise _InvalidKey(f'strconv.Atoi: parsing "{key}": invalid syntax')
    index, size = int(key), len(container) + room
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
        container.insert(_index(container, key, room=1), value)


def _delete(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(container, key)]
    elif key in container:
        del container[key]
    else:
        raise _InvalidKey(f"Unable to remove nonexistent key: {key}: missing value")


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
