"""The standard functions and operators of CEL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from konverge_cluster.cel import arithmetic
from konverge_cluster.cel.functions import A, B, Library, runtime_type
from konverge_cluster.cel.go_floats import go_float
from konverge_cluster.cel.patterns import PatternError, compile_pattern
from konverge_cluster.cel.times import (
    format_duration,
    format_timestamp,
    local_time,
    new_timestamp,
    parse_duration,
    parse_timestamp,
)
from konverge_cluster.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from konverge_cluster.cel.values import INT as INT64
from konverge_cluster.cel.values import (
    NONE,
    Duration,
    EvaluationError,
    Optional,
    Timestamp,
    UInt,
    equal,
    no_overload,
)

__all__ = ["add_standard", "find", "lookup", "matches", "to_string"]

_ORDERED: Final = {
    "bool": BOOL,
    "int64": INT,
    "uint64": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
}
_RELATIONS: Final = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
_INT: Final = re.compile("[+-]?[0-9]+")
_NUMBERS: Final = {"int64": INT, "uint64": UINT, "double": DOUBLE}


def add_standard(library: Library) -> None:
    """Add everything of this module to a library."""
    _add_logic(library)
    _add_arithmetic(library)
    _add_relations(library)
    _add_containers(library)
    _add_conversions(library)
    _add_strings(library)
    _add_times(library)
    _add_types(library)


def _never(*_args: Any) -> Any:
    # These are evaluated inline, since some of their arguments may be skipped.
    raise AssertionError


def _add_logic(library: Library) -> None:
    library.add("_&&_", "logical_and", (BOOL, BOOL), BOOL, _never)
    library.add("_||_", "logical_or", (BOOL, BOOL), BOOL, _never)
    library.add("_?_:_", "conditional", (BOOL, A, A), A, _never)
    library.add("@not_strictly_false", "not_strictly_false", (BOOL,), BOOL, _never)
    library.add("!_", "logical_not", (BOOL,), BOOL, lambda value: not value)
    library.add("_==_", "equals", (A, A), BOOL, equal)
    library.add("_!=_", "not_equals", (A, A), BOOL, lambda one, other: not equal(one, other))


def _add_arithmetic(library: Library) -> None:
    for name, kind in _NUMBERS.items():
        library.add("_+_", f"add_{name}", (kind, kind), kind, arithmetic.add)
        library.add("_-_", f"subtract_{name}", (kind, kind), kind, arithmetic.subtract)
        library.add("_*_", f"multiply_{name}", (kind, kind), kind, arithmetic.multiply)
        library.add("_/_", f"divide_{name}", (kind, kind), kind, arithmetic.divide)
    for name, kind in (("bytes", BYTES), ("string", STRING), ("list", list_of(A)), ("duration_duration", DURATION)):
        library.add("_+_", f"add_{name}", (kind, kind), kind, arithmetic.add)
    library.add("_+_", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, arithmetic.add)
    library.add("_+_", "add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, arithmetic.add)
    library.add("_-_", "subtract_duration_duration", (DURATION, DURATION), DURATION, arithmetic.subtract)
    library.add("_-_", "subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, arithmetic.subtract)
    library.add("_-_", "subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, arithmetic.subtract)
    for name, kind in (("int64", INT), ("uint64", UINT)):
        library.add("_%_", f"modulo_{name}", (kind, kind), kind, arithmetic.mod)
    for name, kind in (("int64", INT), ("double", DOUBLE)):
        library.add("-_", f"negate_{name}", (kind,), kind, arithmetic.neg)


def _add_relations(library: Library) -> None:
    for operator, word in _RELATIONS.items():
        call = arithmetic.compare(operator.strip("_"))
        for name, kind in _ORDERED.items():
            library.add(operator, f"{word}_{name}", (kind, kind), BOOL, call)
        for one, kind in _NUMBERS.items():
            for other, second in _NUMBERS.items():
                if one != other:
                    library.add(operator, f"{word}_{one}_{other}", (kind, second), BOOL, call)


def lookup(container: Any, key: Any) -> Any:
    """Return the item at an index, or the value of a key.

    Raises: EvaluationError when there is none.
    """
    found = find(container, key)
    if found.has_value:
        return found.value
    if isinstance(container, list):
        raise EvaluationError(f"index out of bounds: {key}")
    raise EvaluationError(f"no such key: {_key_text(key)}")


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else go_float(key)


def find(container: Any, key: Any) -> Optional:
    """Return the item at an index, or the value of a key, if there is one."""
    if isinstance(container, list):
        key = _index(key)
        return Optional(container[key]) if 0 <= key < len(container) else NONE
    if not isinstance(container, dict):
        raise EvaluationError(f"no such key: {to_string(key)}")
    if isinstance(key, (list, dict)):
        raise no_overload()
    if key not in container:
        return NONE
    # In Python, true is equal to the key 1.
    if isinstance(key, (bool, int)) and not any(equal(each, key) for each in container):
        return NONE
    return Optional(container[key])


def _index(key: Any) -> int:
    if isinstance(key, float) and key.is_integer() and int(key) in INT64:
        return int(key)
    if isinstance(key, float) or (isinstance(key, UInt) and int(key) not in INT64):
        raise EvaluationError(f"unsupported index value {go_float(key)} in list")
    if not isinstance(key, int) or isinstance(key, bool):
        raise EvaluationError(f"unsupported index type '{runtime_type(key)}' in list")
    return key


def _find_optional(container: Any, key: Any) -> Optional:
    if isinstance(container, Optional):
        return find(container.value, key) if container.has_value else NONE
    return find(container, key)


def _index_optional(container: Optional, key: Any) -> Optional:
    return Optional(lookup(container.value, key)) if container.has_value else NONE


def _contains(value: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return find(container, value).has_value
    return any(equal(value, each) for each in container)


def _add_containers(library: Library) -> None:
    lists, maps = list_of(A), map_of(A, B)
    library.add("_[_]", "index_list", (lists, INT), A, lookup)
    library.add("_[_]", "index_map", (maps, A), B, lookup)
    library.add("_[_]", "optional_list_index_int", (optional_of(lists), INT), optional_of(A), _index_optional)
    library.add("_[_]", "optional_map_index_value", (optional_of(maps), A), optional_of(B), _index_optional)
    library.add("_[?_]", "list_optindex_optional_int", (lists, INT), optional_of(A), _find_optional)
    library.add(
        "_[?_]", "optional_list_optindex_optional_int", (optional_of(lists), INT), optional_of(A), _find_optional
    )
    library.add("_[?_]", "map_optindex_optional_value", (maps, A), optional_of(B), _find_optional)
    library.add("_[?_]", "optional_map_optindex_optional_value", (optional_of(maps), A), optional_of(B), _find_optional)
    library.add("@in", "in_list", (A, lists), BOOL, _contains)
    library.add("@in", "in_map", (A, maps), BOOL, _contains)
    for name, kind in (("bytes", BYTES), ("list", lists), ("map", maps), ("string", STRING)):
        library.add("size", f"size_{name}", (kind,), INT, len)
        library.method("size", f"{name}_size", (kind,), INT, len)


# Conversions.


def _to_int(value: Any) -> int:
    if isinstance(value, str):
        return int(_parsed(_parse_int, value, "int"))
    if isinstance(value, Timestamp):
        return value.nanos // 1_000_000_000
    if isinstance(value, float):
        if not math.isfinite(value) or not -(2**63) < value < 2**63:
            raise EvaluationError("integer overflow")
        return int(value)
    return arithmetic.check_int(int(value))


def _to_uint(value: Any) -> UInt:
    if isinstance(value, str):
        return UInt(_parsed(_parse_uint, value, "uint"))
    if isinstance(value, float) and not math.isfinite(value):
        raise EvaluationError("unsigned integer overflow")
    return arithmetic.check_uint(int(value))


def _to_double(value: Any) -> float:
    return float(_parsed(_parse_double, value, "double")) if isinstance(value, str) else float(value)


def _parsed(read: Callable[[str], Any], text: str, name: str) -> Any:
    try:
        return read(text)
    except ValueError:
        raise EvaluationError(f"type conversion error from 'string' to '{name}'") from None


def _parse_int(text: str) -> int:
    if not _INT.fullmatch(text) or int(text) not in INT64:
        raise ValueError(text)
    return int(text)


def _parse_uint(text: str) -> int:
    if not _INT.fullmatch(text) or text[0] in "+-" or int(text) >= 2**64:
        raise ValueError(text)
    return int(text)


def _parse_double(text: str) -> float:
    if text != text.strip():
        raise ValueError(text)
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise ValueError(text)
    return value


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "True": True, "TRUE": True, "t": True, "1": True}
    words |= {"false": False, "False": False, "FALSE": False, "f": False, "0": False}
    if value not in words:
        raise EvaluationError("type conversion error from 'string' to 'bool'")
    return words[value]


def to_string(value: Any) -> str:
    """Return a value as a string, like `string()`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return go_float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    return str(value)


def _to_duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, int):
        raise EvaluationError("type conversion error from 'int' to 'google.protobuf.Duration'")
    try:
        return parse_duration(value)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'") from None


def _to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int):
        return new_timestamp(value * 1_000_000_000)
    try:
        return parse_timestamp(value)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from None


def _add_conversions(library: Library) -> None:
    conversions: tuple[tuple[str, Type, Callable[[Any], Any], tuple[Type, ...]], ...] = (
        ("int", INT, _to_int, (INT, DOUBLE, DURATION, STRING, TIMESTAMP, UINT)),
        ("uint", UINT, _to_uint, (UINT, DOUBLE, INT, STRING)),
        ("double", DOUBLE, _to_double, (DOUBLE, INT, STRING, UINT)),
        ("bool", BOOL, _to_bool, (BOOL, STRING)),
        ("string", STRING, to_string, (STRING, BOOL, BYTES, DOUBLE, DURATION, INT, TIMESTAMP, UINT)),
        ("bytes", BYTES, lambda value: value.encode() if isinstance(value, str) else value, (BYTES, STRING)),
        ("duration", DURATION, _to_duration, (DURATION, INT, STRING)),
        ("timestamp", TIMESTAMP, _to_timestamp, (TIMESTAMP, INT, STRING)),
    )
    for name, result, call, kinds in conversions:
        for kind in kinds:
            if (name, kind) != ("int", DURATION):
                library.add(name, f"{kind}_to_{name}", (kind,), result, call)
    library.add("dyn", "to_dyn", (A,), DYN, lambda value: value)
    library.add("type", "type", (A,), type_of(A), _never)


def matches(text: str, pattern: str) -> bool:
    """Report whether a pattern matches anywhere in a text.

    Raises: EvaluationError for an invalid pattern.
    """
    try:
        return compile_pattern(pattern).search(text) is not None
    except PatternError as error:
        raise EvaluationError(str(error)) from None


def _add_strings(library: Library) -> None:
    library.test("contains", "contains_string", (STRING, STRING), lambda text, part: part in text)
    library.test("endsWith", "ends_with_string", (STRING, STRING), lambda text, part: text.endswith(part))
    library.test("startsWith", "starts_with_string", (STRING, STRING), lambda text, part: text.startswith(part))
    library.add("matches", "matches", (STRING, STRING), BOOL, matches)
    library.test("matches", "matches_string", (STRING, STRING), matches)


def _add_times(library: Library) -> None:
    parts: dict[str, Callable[[Any], int]] = {
        "getFullYear": lambda when: when.year,
        "getMonth": lambda when: when.month - 1,
        "getDate": lambda when: when.day,
        "getDayOfMonth": lambda when: when.day - 1,
        "getDayOfWeek": lambda when: (when.weekday() + 1) % 7,
        "getDayOfYear": lambda when: when.timetuple().tm_yday - 1,
        "getHours": lambda when: when.hour,
        "getMinutes": lambda when: when.minute,
        "getSeconds": lambda when: when.second,
    }
    for name, part in parts.items():
        library.method(name, f"timestamp_{name}", (TIMESTAMP,), INT, _part(part))
        library.method(name, f"timestamp_{name}_with_tz", (TIMESTAMP, STRING), INT, _part(part))
    millis = "getMilliseconds"
    library.method(millis, "timestamp_millis", (TIMESTAMP,), INT, lambda value: value.nanos // 1_000_000 % 1000)
    with_zone = (TIMESTAMP, STRING)
    library.method(millis, "timestamp_millis_tz", with_zone, INT, lambda value, _zone: value.nanos // 1_000_000 % 1000)
    sizes = {"getHours": 3600 * 10**9, "getMinutes": 60 * 10**9, "getSeconds": 10**9, millis: 10**6}
    for name, size in sizes.items():
        library.method(name, f"duration_{name}", (DURATION,), INT, _whole(size))


def _part(part: Callable[[Any], int]) -> Callable[..., int]:
    return lambda value, zone="UTC": part(local_time(value, zone))


def _whole(size: int) -> Callable[[Duration], int]:
    return lambda value: int(abs(value.nanos) // size) * (1 if value.nanos >= 0 else -1)


def _add_types(library: Library) -> None:
    names = {"bool": BOOL, "int": INT, "uint": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES}
    names |= {"null_type": NULL, "list": list_of(DYN), "map": map_of(DYN, DYN), "type": type_of(DYN)}
    names |= {"google.protobuf.Timestamp": TIMESTAMP, "google.protobuf.Duration": DURATION}
    for name, kind in names.items():
        library.constant(name, kind)
