"""Type checker: infers the type of every subexpression and resolves the overload of each call.

Messages and rules are those of the real server. The checker knows the fields of objects, so that a missing field is
an error at compile time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_cluster.cel.functions import Function, Library, Overload
from konverge_cluster.cel.parser import RESERVED
from konverge_cluster.cel.syntax import (
    Call,
    Comprehension,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Message,
    Node,
    Select,
    Struct,
    qualified_name,
)
from konverge_cluster.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Bindings,
    Type,
    common_type,
    list_of,
    map_of,
    optional_of,
    param,
    unwrap_optional,
)
from konverge_cluster.cel.values import UInt

__all__ = ["Checked", "check"]


class Checked:
    """The result of a check: types, the overloads of calls, constants."""

    def __init__(self) -> None:
        self.types: dict[Node, Type] = {}
        self.overloads: dict[Node, list[Overload]] = {}
        self.constants: dict[Node, Any] = {}
        self.qualified: set[Node] = set()
        self.used: set[str] = set()

    def type_of(self, node: Node) -> Type:
        return self.types[node]


def check(node: Node, library: Library, variables: Mapping[str, Type]) -> tuple[Checked, list[Message]]:
    """Check an expression; return the result and the errors, in the order of the text."""
    checker = _Checker(library, variables)
    checker.visit(node)
    checked = checker.checked
    for each, kind in checked.types.items():
        checked.types[each] = checker.bindings.resolve(kind, to_dyn=True)
    return checked, checker.messages


class _Checker:
    def __init__(self, library: Library, variables: Mapping[str, Type]) -> None:
        self._library = library
        self._scopes: list[dict[str, Type]] = [dict(variables)]
        self._count = 0
        self.bindings = Bindings()
        self.checked = Checked()
        self.messages: list[Message] = []

    def visit(self, node: Node) -> Type:
        kind = self._find(node)
        self.checked.types[node] = kind
        return kind

    def _find(self, node: Node) -> Type:
        if isinstance(node, Literal):
            return _literal_type(node.value)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._comprehension(node)
        return self._struct(node)

    def _report(self, node: Node, text: str) -> None:
        self.messages.append(Message(node.at, text))

    def _format_type(self, kind: Type) -> str:
        return str(kind)

    # Names.

    def _lookup(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                self.checked.used.add(name)
                return scope[name]
        return None

    def _ident(self, node: Ident) -> Type:
        found = self._lookup(node.name)
        if found is not None:
            return found
        constant = self._library.constants.get(node.name)
        if constant is not None:
            self.checked.constants[node] = constant[1]
            return constant[0]
        self._report(node, f"undeclared reference to '{node.name}' (in container '')")
        return ERROR

    def _select(self, node: Select) -> Type:
        name = qualified_name(node)
        constant = self._library.constants.get(name) if name else None
        if constant is not None:
            self.checked.constants[node] = constant[1]
            return constant[0]
        found = self._field(node, node.operand, node.field, optional=False)
        return BOOL if node.test else self.bindings.resolve(found)

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        target, is_optional = unwrap_optional(self.bindings.resolve(self.visit(operand)))
        found = DYN
        if target.kind == "map":
            found = target.params[1]
        elif target.kind == "struct":
            found = self._struct_field(node, target, name)
        elif target.kind == "param":
            self.bindings.match([DYN], [target])
        elif not target.is_open:
            self._report(node, f"type '{self._format_type(target)}' does not support field selection")
        return optional_of(found) if is_optional or optional else found

    def _struct_field(self, node: Node, target: Type, name: str) -> Type:
        fields = target.fields or {}
        if name not in fields and name in RESERVED:
            name = f"__{name}__"
        if name in fields:
            return fields[name]
        self._report(node, f"undefined field '{name}'")
        return ERROR

    # Calls.

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)
            return self.bindings.resolve(self._field(node, node.args[0], name.value, optional=True))
        if node.target is None:
            return self._call_global(node, node.function)
        prefix = qualified_name(node.target)
        if prefix and f"{prefix}.{node.function}" in self._library.functions:
            self.checked.qualified.add(node)
            return self._call_global(node, f"{prefix}.{node.function}")
        kinds = [self.visit(each) for each in node.args]
        kinds.insert(0, self.visit(node.target))
        function = self._library.functions.get(node.function)
        if function is None:
            self._report(node, f"undeclared reference to '{node.function}' (in container '')")
            return ERROR
        return self._resolve(node, function, kinds, member=True)

    def _call_global(self, node: Call, name: str) -> Type:
        kinds = [self.visit(each) for each in node.args]
        function = self._library.functions.get(name)
        if function is None:
            self._report(node, f"undeclared reference to '{name}' (in container '')")
            return ERROR
        if name in ("_&&_", "_||_"):
            return self._logical(node, function, kinds)
        return self._resolve(node, function, kinds, member=False)

    def _logical(self, node: Call, function: Function, kinds: list[Type]) -> Type:
        self.checked.overloads[node] = function.overloads[:1]
        wrong = False
        for each, kind in zip(node.args, kinds, strict=True):
            if not self.bindings.match([kind], [BOOL]):
                self._report(each, f"expected type 'bool' but found '{self._format_type(kind)}'")
                wrong = True
        return ERROR if wrong else BOOL

    def _resolve(self, node: Call, function: Function, kinds: list[Type], *, member: bool) -> Type:
        chosen: list[Overload] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != member:
                continue
            expected, returned = self._instantiate(overload)
            if not self.bindings.match(kinds, expected):
                continue
            chosen.append(overload)
            found = self.bindings.resolve(returned)
            if result is None:
                result = found
            elif not result.is_dyn and found != result:
                result = DYN
        if result is None:
            shown = [self._format_type(self.bindings.resolve(kind, to_dyn=True)) for kind in kinds]
            signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self._report(node, f"found no matching overload for '{function.name}' applied to '{signature}'")
            return ERROR
        self.checked.overloads[node] = chosen
        return result

    def _instantiate(self, overload: Overload) -> tuple[list[Type], Type]:
        """Return the types of an overload with fresh type parameters, so that two calls do not share bindings."""
        renamed: dict[str, Type] = {}

        def rename(kind: Type) -> Type:
            if kind.kind == "param":
                if kind.name not in renamed:
                    renamed[kind.name] = self._variable()
                return renamed[kind.name]
            if not kind.params:
                return kind
            return Type(kind.kind, kind.name, tuple(map(rename, kind.params)), kind.fields)

        return [rename(each) for each in overload.params], rename(overload.result)

    def _variable(self) -> Type:
        self._count += 1
        return param(f"_var{self._count}")

    # Lists, maps, comprehensions.

    def _join(self, before: Type | None, kind: Type) -> Type:
        if before is None:
            return kind
        # Literals of mixed types are rejected later, unless they are the arguments of `format`.
        return common_type(before, kind) if self.bindings.match([before], [kind]) else DYN

    def _element(self, node: Node, *, optional: bool) -> Type:
        kind = self.visit(node)
        if not optional:
            return kind
        inner, is_optional = unwrap_optional(kind)
        if not is_optional and not kind.is_open:
            self._report(node, f"expected type '{optional_of(kind)}' but found '{self._format_type(kind)}'")
        return inner

    def _list(self, node: ListNode) -> Type:
        kind: Type | None = None
        for index, each in enumerate(node.elements):
            kind = self._join(kind, self._element(each, optional=index in node.optional))
        return list_of(kind or self._variable())

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._join(keys, self.visit(key))
            values = self._join(values, self._element(value, optional=optional))
        return map_of(keys or self._variable(), values or self._variable())

    def _struct(self, node: Struct) -> Type:
        for _, value, _optional in node.fields:
            self.visit(value)
        self._report(node, f"undeclared reference to '{node.name}' (in container '')")
        return ERROR

    def _comprehension(self, node: Comprehension) -> Type:
        over = self.bindings.resolve(self.visit(node.range))
        accumulated = self.visit(node.init)
        self._scopes.append({node.accumulator: accumulated})
        self._scopes.append(self._loop_variables(node, over))
        self.visit(node.condition)
        self._assert(node.condition, BOOL)
        self.visit(node.step)
        self._assert(node.step, accumulated)
        self._scopes.pop()
        result = self.visit(node.result)
        self._scopes.pop()
        return self.bindings.resolve(result)

    def _loop_variables(self, node: Comprehension, over: Type) -> dict[str, Type]:
        first, second = DYN, DYN
        if over.kind == "list":
            first, second = (INT, over.params[0]) if node.second else (over.params[0], DYN)
        elif over.kind == "map":
            first, second = over.params
        elif over.kind in ("dyn", "error", "param"):
            self.bindings.match([DYN], [over])
        else:
            text = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._report(node.range, f"expression of type '{self._format_type(over)}' {text}")
            first = second = ERROR
        return {node.variable: first, node.second: second} if node.second else {node.variable: first}

    def _assert(self, node: Node, kind: Type) -> None:
        if not self.bindings.match([kind], [self.checked.types[node]]):
            found = self._format_type(self.checked.types[node])
            self._report(node, f"expected type '{self._format_type(kind)}' but found '{found}'")


def _literal_type(value: Any) -> Type:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, UInt):
        return UINT
    kinds: dict[type, Type] = {int: INT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}
    return kinds[type(value)]
