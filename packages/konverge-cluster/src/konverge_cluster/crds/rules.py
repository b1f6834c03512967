"""Validation rules of a schema (`x-kubernetes-validations`): compiled once, evaluated on every write.

A rule with `oldSelf` is a transition rule: it runs only if there is an old value, unless `optionalOldSelf` is
set. Any other rule that an unchanged value breaks is not an error on an update, only a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from konverge_cluster.api.field_errors import OMIT_VALUE, FieldError, forbidden, internal, invalid, required
from konverge_cluster.cel.compiler import BudgetExceeded
from konverge_cluster.cel.environments import CompileError, Environment, Program
from konverge_cluster.cel.types import BOOL, STRING, optional_of
from konverge_cluster.cel.values import EvaluationError, Optional
from konverge_cluster.crds.compiled import RuleSet
from konverge_cluster.crds.correlation import Correlation, items_by_key, key_of
from konverge_cluster.crds.field_paths import FieldPathError, resolve_path
from konverge_cluster.crds.paths import FieldPath, format_path
from konverge_cluster.crds.printable_definitions import printable_rule
from konverge_cluster.crds.printable_values import printable_value
from konverge_cluster.crds.rule_costs import Costs
from konverge_cluster.crds.rule_types import Declaration, escape, to_declaration
from konverge_cluster.crds.schema_rules import RuleSite
from konverge_cluster.crds.structural import Structural, read_structural

__all__ = ["Rules"]

_MAX_MESSAGE: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Rule:
    """A compiled rule. `text` identifies it in errors."""

    program: Program
    message: Program | None
    source: Mapping[str, Any]
    field_path: FieldPath
    uses_old: bool

    @property
    def text(self) -> str:
        return str(self.source.get("message", "")).strip() or str(self.source["rule"]).strip()

    @property
    def optional_old(self) -> bool:
        return self.source.get("optionalOldSelf") is True


def _environment(declaration: Declaration, *, optional_old: bool) -> Environment:
    old = optional_of(declaration.type) if optional_old else declaration.type
    return Environment({"self": declaration.type, "oldSelf": old})


def _compile(source: Mapping[str, Any], schema: Structural, declaration: Declaration) -> _Rule:
    """Compile one rule that is known to be valid."""
    environment = _environment(declaration, optional_old=source.get("optionalOldSelf") is True)
    program = environment.compile(source["rule"])
    message = environment.compile(source["messageExpression"]) if source.get("messageExpression") else None
    field_path: FieldPath = None
    if source.get("fieldPath"):
        try:
            field_path, _ = resolve_path(source["fieldPath"], schema)
        except FieldPathError:
            field_path = None
    return _Rule(program, message, source, field_path, "oldSelf" in program.used)


class Rules:
    """Compiles rules when a definition is written, and again when it is served."""

    def site_errors(self, sites: list[RuleSite], path: str) -> list[FieldError]:
        """Return the errors of the rules of the schema at `path`."""
        costs = Costs()
        found = [error for site in sites for error in _site_errors(site, costs)]
        return found + costs.total_errors(path)

    def check_default(self, schema: Structural, default: Any, path: str, is_resource: bool) -> list[FieldError]:
        """Check a default against the rules of its schema, as an unchanged value and as a new one."""
        try:
            node = _build(schema, is_resource=is_resource)
        except CompileError:
            # The invalid rule itself is reported elsewhere.
            return []
        if node is None:
            return []
        base: FieldPath = (None, path)
        return _Run(None).check(node, default, default, base) or _Run(None).check(node, default, None, base)

    def compile(self, schema: Structural) -> RuleSet | None:
        """Compile the rules of a resource; return None if it has none."""
        node = _build(schema, is_resource=True)
        return _CompiledRules(node) if node is not None else None


def _site_errors(site: RuleSite, costs: Costs) -> Iterator[FieldError]:
    schema = read_structural(site.schema)
    where = f"{site.path}.x-kubernetes-validations"
    declaration = to_declaration(schema, is_resource=site.is_resource)
    if declaration is None:
        text = "failed to construct type information for x-kubernetes-validations rules"
        why = "unable to convert structural schema to CEL declarations"
        yield internal(where, f"internal error: {text}: {why}")
        return
    for index, source in enumerate(site.schema["x-kubernetes-validations"]):
        yield from _one_rule_errors(source, f"{where}[{index}]", declaration, site, costs)


def _one_rule_errors(
    source: Mapping[str, Any], path: str, declaration: Declaration, site: RuleSite, costs: Costs
) -> Iterator[FieldError]:
    environment = _environment(declaration, optional_old=source.get("optionalOldSelf") is True)
    prefixes = {"compilation": "compilation failed: ", "instantiation": "program instantiation failed: "}
    program, why = _attempt(environment, source["rule"], BOOL, prefixes, "cel expression must evaluate to a bool")
    if program is None:
        yield invalid(f"{path}.rule", printable_rule(source), why)
        return
    yield from costs.rule_errors(program.max_cost(declaration), declaration, site.count, f"{path}.rule")
    expression = source.get("messageExpression")
    if expression:
        prefixes = {stage: f"messageExpression {stage} failed: " for stage in prefixes}
        wrong = "messageExpression must evaluate to a string"
        message, why = _attempt(environment, expression, STRING, prefixes, wrong)
        if message is None:
            yield invalid(f"{path}.messageExpression", printable_rule(source), why)
        else:
            yield from costs.message_errors(message.max_cost(declaration), f"{path}.messageExpression")
    yield from _old_errors(source, path, program, site)


def _attempt(
    environment: Environment, text: str, expected: Any, prefixes: Mapping[str, str], wrong: str
) -> tuple[Program | None, str]:
    try:
        program = environment.compile(text)
    except CompileError as error:
        return None, f"{prefixes[error.stage]}{error}"
    return (program, "") if program.result == expected else (None, wrong)


def _old_errors(source: Mapping[str, Any], path: str, program: Program, site: RuleSite) -> Iterator[FieldError]:
    if "oldSelf" in program.used:
        if site.not_correlatable:
            text = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            yield invalid(f"{path}.rule", source["rule"], f"{text} {site.not_correlatable}")
    elif source.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", source["optionalOldSelf"], text)


@dataclass(slots=True, eq=False)
class _Node:
    """A schema with rules, or with rules in the schemas inside it."""

    schema: Structural
    declaration: Declaration
    rules: list[_Rule] = field(default_factory=list)
    properties: dict[str, _Node] = field(default_factory=dict)
    values: _Node | None = None
    items: _Node | None = None

    @property
    def is_empty(self) -> bool:
        return not (self.rules or self.properties or self.values or self.items)


def _build(schema: Structural, *, is_resource: bool) -> _Node | None:
    if not any(node.rules for node in schema.walk()):
        return None
    declaration = to_declaration(schema, is_resource=is_resource)
    return _build_node(schema, declaration) if declaration is not None else None


def _build_node(schema: Structural, declaration: Declaration) -> _Node | None:
    node = _Node(schema, declaration, [_compile(source, schema, declaration) for source in schema.rules])
    for name, each in schema.properties.items():
        escaped = escape(name)
        inner = declaration.fields.get(escaped) if escaped else to_declaration(each, is_resource=each.embedded)
        built = _build_node(each, inner) if inner is not None else None
        if built is not None:
            node.properties[name] = built
    if declaration.element is not None:
        if schema.values is not None:
            node.values = _build_node(schema.values, declaration.element)
        if schema.items is not None:
            node.items = _build_node(schema.items, declaration.element)
    return None if node.is_empty else node


class _CompiledRules:
    """The compiled rules of a resource."""

    def __init__(self, node: _Node) -> None:
        self._node = node

    def errors(self, new: Any, old: Any, correlation: Correlation | None) -> list[FieldError]:
        return _Run(correlation).check(self._node, new, old, None)

    def ratcheting_errors(self, new: Any, old: Any, correlation: Correlation) -> list[FieldError]:
        run = _Run(correlation)
        run.check(self._node, new, old, None)
        return run.ratcheting_errors


@dataclass(frozen=True, slots=True)
class _RatchetingState:
    """The pair of values that ratcheting compares: the current one, else the nearest parent."""

    current: Correlation | None = None
    parent: Correlation | None = None

    def key(self, name: str) -> _RatchetingState:
        if self.current is None:
            return self
        if self.parent is None and name in ("apiVersion", "kind"):
            return _RatchetingState()
        return _RatchetingState(self.current.key(name), self.current)

    def index(self, at: int) -> _RatchetingState:
        return self if self.current is None else _RatchetingState(self.current.index(at), self.current)

    @property
    def tolerates(self) -> bool:
        pair = self.current if self.current is not None else self.parent
        return pair is not None and pair.unchanged()


class _OutOfBudget(Exception):
    """The cost budget is exhausted: no further rule is evaluated."""


class _Run:
    """One evaluation of all rules on one object."""

    def __init__(self, correlation: Correlation | None) -> None:
        self._ratcheting = _RatchetingState(correlation)
        self._found: list[FieldError] = []
        self.ratcheting_errors: list[FieldError] = []

    def check(self, node: _Node, new: Any, old: Any, field_path: FieldPath) -> list[FieldError]:
        with suppress(_OutOfBudget):
            self._visit(node, new, old, field_path, self._ratcheting)
        return self._found

    def _visit(self, node: _Node, new: Any, old: Any, field_path: FieldPath, ratcheting: _RatchetingState) -> None:
        if new is None:
            return
        if node.rules:
            self._run_rules(node, new, old, field_path, ratcheting)
        if isinstance(new, list):
            self._visit_items(node, new, old, field_path, ratcheting)
        elif isinstance(new, dict):
            self._visit_members(node, new, old, field_path, ratcheting)

    def _visit_items(
        self, node: _Node, new: list[Any], old: Any, field_path: FieldPath, ratcheting: _RatchetingState
    ) -> None:
        if node.items is None:
            return
        before = items_by_key(node.schema, old)
        for index, item in enumerate(new):
            old_item = before.get(key_of(node.schema, item)) if before and isinstance(item, dict) else None
            self._visit(node.items, item, old_item, (field_path, index), ratcheting.index(index))

    def _visit_members(
        self, node: _Node, new: dict[str, Any], old: Any, field_path: FieldPath, ratcheting: _RatchetingState
    ) -> None:
        before = old if isinstance(old, dict) else {}
        if node.values is not None:
            for key, item in new.items():
                self._visit(node.values, item, before.get(key), (field_path, f"[{key}]"), ratcheting.key(key))
        for name, inner in node.properties.items():
            if name in new:
                self._visit(inner, new[name], before.get(name), (field_path, f".{name}"), ratcheting.key(name))

    # The rules of one value.

    def _run_rules(self, node: _Node, new: Any, old: Any, field_path: FieldPath, ratcheting: _RatchetingState) -> None:
        kind = node.schema.type
        try:
            value = node.declaration.value(new)
            uses_old = any(rule.uses_old for rule in node.rules)
            before = node.declaration.value(old) if old is not None and uses_old else None
        except EvaluationError as error:
            self._found.append(invalid(format_path(field_path), kind, str(error)))
            return
        for rule in node.rules:
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            variables = {"self": value}
            if rule.optional_old:
                variables["oldSelf"] = Optional(before) if old is not None else Optional(has_value=False)
            elif old is not None:
                variables["oldSelf"] = before
            self._run_rule(rule, variables, (node, new, field_path), ratcheting)

    def _run_rule(
        self, rule: _Rule, variables: dict[str, Any], where: tuple[_Node, Any, FieldPath], ratcheting: _RatchetingState
    ) -> None:
        node, new, field_path = where
        kind = node.schema.type
        try:
            if rule.program.evaluate(variables) is True:
                return
        except BudgetExceeded as error:
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._found.append(invalid(format_path(field_path), kind, f"'{error}': {text}: {rule.text}"))
            raise _OutOfBudget from None
        except EvaluationError as error:
            self._found.append(invalid(format_path(field_path), kind, _evaluation_text(str(error), rule)))
            return
        shown_value = OMIT_VALUE if kind in ("object", "array") else printable_value(new)
        broken = _rule_error(rule, _at(field_path, rule.field_path), shown_value, _message(rule, variables))
        is_ratcheted = not rule.uses_old and ratcheting.tolerates
        (self.ratcheting_errors if is_ratcheted else self._found).append(broken)


def _at(field_path: FieldPath, inner: FieldPath) -> str:
    steps: list[str | int] = []
    while inner is not None:
        inner, step = inner
        steps.append(step)
    for step in reversed(steps):
        field_path = (field_path, step)
    return format_path(field_path)


def _evaluation_text(error: str, rule: _Rule) -> str:
    if error.startswith("no such overload"):
        text = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {text}: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _message(rule: _Rule, variables: dict[str, Any]) -> str:
    """Return the message of a broken rule: the result of its expression if that is usable, else its static message."""
    if rule.message is not None:
        try:
            source = rule.message.evaluate(variables)
        except EvaluationError:
            source = ""
        text = source.strip() if isinstance(source, str) else ""
        if text and len(text.encode()) <= _MAX_MESSAGE and "\n" not in text:
            return text
    written = str(rule.source.get("message", ""))
    return written.strip() if written else f"failed rule: {rule.text}"


def _rule_error(rule: _Rule, path: str, value: Any, detail: str) -> FieldError:
    reason = rule.source.get("reason")
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if reason == "FieldValueDuplicate":
        return FieldError("FieldValueDuplicate", path, value)
    return invalid(path, value, detail)
