"""Rules of a schema (`x-kubernetes-validations`): compiled once, run on every write.

A rule with `oldSelf` speaks about a change: it runs only where there is an old value, unless it says that it can do
without. Any other rule that an unchanged value breaks is not an error on an update, only a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from konverge_cluster.api.field_errors import OMIT_VALUE, FieldError, forbidden, internal, invalid, required
from konverge_cluster.cel.environments import CompileError, Environment, Program
from konverge_cluster.cel.evaluation import Exhausted
from konverge_cluster.cel.types import BOOL, STRING, optional_of
from konverge_cluster.cel.values import EvaluationError, Optional
from konverge_cluster.crds.compiled import RuleSet
from konverge_cluster.crds.correlation import Correlation, items_by_key, key_of
from konverge_cluster.crds.field_paths import BadPath, resolve_path
from konverge_cluster.crds.internals import shown_rule
from konverge_cluster.crds.paths import Place, text_of
from konverge_cluster.crds.rule_costs import Costs
from konverge_cluster.crds.rule_types import Declared, declare, escape
from konverge_cluster.crds.schema_rules import RuleSite
from konverge_cluster.crds.shown import shown
from konverge_cluster.crds.structural import Structural, read_structural

__all__ = ["Rules"]

_LONGEST_MESSAGE: Final = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Rule:
    """A compiled rule. `text` is what names it in errors."""

    program: Program
    message: Program | None
    said: Mapping[str, Any]
    field_path: Place
    uses_old: bool

    @property
    def text(self) -> str:
        return str(self.said.get("message", "")).strip() or str(self.said["rule"]).strip()

    @property
    def optional_old(self) -> bool:
        return self.said.get("optionalOldSelf") is True


def _environment(declared: Declared, *, optional_old: bool) -> Environment:
    old = optional_of(declared.type) if optional_old else declared.type
    return Environment({"self": declared.type, "oldSelf": old})


def _compile(said: Mapping[str, Any], schema: Structural, declared: Declared) -> _Rule:
    """Compile one rule that is known to be good."""
    environment = _environment(declared, optional_old=said.get("optionalOldSelf") is True)
    program = environment.compile(said["rule"])
    message = environment.compile(said["messageExpression"]) if said.get("messageExpression") else None
    place: Place = None
    if said.get("fieldPath"):
        try:
            place, _ = resolve_path(said["fieldPath"], schema)
        except BadPath:
            place = None
    return _Rule(program, message, said, place, "oldSelf" in program.used)


class Rules:
    """Compiles rules when a definition is written, and makes them ready when it is served."""

    def site_problems(self, sites: list[RuleSite], path: str) -> list[FieldError]:
        """Say what is wrong with the rules of a schema that stands at `path`."""
        costs = Costs()
        found = [problem for site in sites for problem in _site_problems(site, costs)]
        return found + costs.total_problems(path)

    def check_default(self, schema: Structural, default: Any, path: str, is_resource: bool) -> list[FieldError]:
        """Hold a default against the rules at its place, as an unchanged value and as a new one."""
        try:
            node = _build(schema, is_resource=is_resource)
        except CompileError:
            # The rule itself is reported where it stands.
            return []
        if node is None:
            return []
        base: Place = (None, path)
        return _Run(None).check(node, default, default, base) or _Run(None).check(node, default, None, base)

    def compile(self, schema: Structural) -> RuleSet | None:
        """Make the rules of a resource ready; None when it has none."""
        node = _build(schema, is_resource=True)
        return _CompiledRules(node) if node is not None else None


def _site_problems(site: RuleSite, costs: Costs) -> Iterator[FieldError]:
    schema = read_structural(site.schema)
    where = f"{site.path}.x-kubernetes-validations"
    declared = declare(schema, is_resource=site.is_resource)
    if declared is None:
        text = "failed to construct type information for x-kubernetes-validations rules"
        why = "unable to convert structural schema to CEL declarations"
        yield internal(where, f"internal error: {text}: {why}")
        return
    for index, said in enumerate(site.schema["x-kubernetes-validations"]):
        yield from _one_rule_problems(said, f"{where}[{index}]", declared, site, costs)


def _one_rule_problems(
    said: Mapping[str, Any], path: str, declared: Declared, site: RuleSite, costs: Costs
) -> Iterator[FieldError]:
    environment = _environment(declared, optional_old=said.get("optionalOldSelf") is True)
    prefixes = {"compilation": "compilation failed: ", "instantiation": "program instantiation failed: "}
    program, why = _attempt(environment, said["rule"], BOOL, prefixes, "cel expression must evaluate to a bool")
    if program is None:
        yield invalid(f"{path}.rule", shown_rule(said), why)
        return
    yield from costs.rule_problems(program.most_cost(declared), declared, site.count, f"{path}.rule")
    expression = said.get("messageExpression")
    if expression:
        prefixes = {stage: f"messageExpression {stage} failed: " for stage in prefixes}
        wrong = "messageExpression must evaluate to a string"
        message, why = _attempt(environment, expression, STRING, prefixes, wrong)
        if message is None:
            yield invalid(f"{path}.messageExpression", shown_rule(said), why)
        else:
            yield from costs.message_problems(message.most_cost(declared), f"{path}.messageExpression")
    yield from _old_problems(said, path, program, site)


def _attempt(
    environment: Environment, text: str, wanted: Any, prefixes: Mapping[str, str], wrong: str
) -> tuple[Program | None, str]:
    try:
        program = environment.compile(text)
    except CompileError as error:
        return None, f"{prefixes[error.stage]}{error}"
    return (program, "") if program.result == wanted else (None, wrong)


def _old_problems(said: Mapping[str, Any], path: str, program: Program, site: RuleSite) -> Iterator[FieldError]:
    if "oldSelf" in program.used:
        if site.uncorrelated:
            text = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
            yield invalid(f"{path}.rule", said["rule"], f"{text} {site.uncorrelated}")
    elif said.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{path}.optionalOldSelf", said["optionalOldSelf"], text)


@dataclass(slots=True, eq=False)
class _Node:
    """A schema with its rules, and the schemas inside it that have some."""

    schema: Structural
    declared: Declared
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
    declared = declare(schema, is_resource=is_resource)
    return _build_node(schema, declared) if declared is not None else None


def _build_node(schema: Structural, declared: Declared) -> _Node | None:
    node = _Node(schema, declared, [_compile(said, schema, declared) for said in schema.rules])
    for name, each in schema.properties.items():
        escaped = escape(name)
        inner = declared.fields.get(escaped) if escaped else declare(each, is_resource=each.embedded)
        built = _build_node(each, inner) if inner is not None else None
        if built is not None:
            node.properties[name] = built
    if declared.element is not None:
        if schema.values is not None:
            node.values = _build_node(schema.values, declared.element)
        if schema.items is not None:
            node.items = _build_node(schema.items, declared.element)
    return None if node.is_empty else node


class _CompiledRules:
    """The rules of a resource."""

    def __init__(self, node: _Node) -> None:
        self._node = node

    def problems(self, new: Any, old: Any, correlation: Correlation | None) -> list[FieldError]:
        return _Run(correlation).check(self._node, new, old, None)

    def tolerated(self, new: Any, old: Any, correlation: Correlation) -> list[FieldError]:
        run = _Run(correlation)
        run.check(self._node, new, old, None)
        return run.tolerated


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """The pair of values that decides whether an error is tolerated: the one here, else the nearest above."""

    here: Correlation | None = None
    above: Correlation | None = None

    def key(self, name: str) -> _Ratchet:
        if self.here is None:
            return self
        if self.above is None and name in ("apiVersion", "kind"):
            return _Ratchet()
        return _Ratchet(self.here.key(name), self.here)

    def index(self, at: int) -> _Ratchet:
        return self if self.here is None else _Ratchet(self.here.index(at), self.here)

    @property
    def tolerates(self) -> bool:
        pair = self.here if self.here is not None else self.above
        return pair is not None and pair.unchanged()


class _OutOfBudget(Exception):
    """No further rule is run."""


class _Run:
    """One pass of all rules over one object."""

    def __init__(self, correlation: Correlation | None) -> None:
        self._ratchet = _Ratchet(correlation)
        self._found: list[FieldError] = []
        self.tolerated: list[FieldError] = []

    def check(self, node: _Node, new: Any, old: Any, place: Place) -> list[FieldError]:
        with suppress(_OutOfBudget):
            self._visit(node, new, old, place, self._ratchet)
        return self._found

    def _visit(self, node: _Node, new: Any, old: Any, place: Place, ratchet: _Ratchet) -> None:
        if new is None:
            return
        if node.rules:
            self._run_rules(node, new, old, place, ratchet)
        if isinstance(new, list):
            self._visit_items(node, new, old, place, ratchet)
        elif isinstance(new, dict):
            self._visit_members(node, new, old, place, ratchet)

    def _visit_items(self, node: _Node, new: list[Any], old: Any, place: Place, ratchet: _Ratchet) -> None:
        if node.items is None:
            return
        before = items_by_key(node.schema, old)
        for index, item in enumerate(new):
            known = before.get(key_of(node.schema, item)) if before and isinstance(item, dict) else None
            self._visit(node.items, item, known, (place, index), ratchet.index(index))

    def _visit_members(self, node: _Node, new: dict[str, Any], old: Any, place: Place, ratchet: _Ratchet) -> None:
        before = old if isinstance(old, dict) else {}
        if node.values is not None:
            for key, item in new.items():
                self._visit(node.values, item, before.get(key), (place, f"[{key}]"), ratchet.key(key))
        for name, inner in node.properties.items():
            if name in new:
                self._visit(inner, new[name], before.get(name), (place, f".{name}"), ratchet.key(name))

    # The rules of one value.

    def _run_rules(self, node: _Node, new: Any, old: Any, place: Place, ratchet: _Ratchet) -> None:
        kind = node.schema.type
        try:
            value = node.declared.value(new)
            uses_old = any(rule.uses_old for rule in node.rules)
            before = node.declared.value(old) if old is not None and uses_old else None
        except EvaluationError as error:
            self._found.append(invalid(text_of(place), kind, str(error)))
            return
        for rule in node.rules:
            if rule.uses_old and old is None and not rule.optional_old:
                continue
            variables = {"self": value}
            if rule.optional_old:
                variables["oldSelf"] = Optional(before) if old is not None else Optional(has_value=False)
            elif old is not None:
                variables["oldSelf"] = before
            self._run_rule(rule, variables, (node, new, place), ratchet)

    def _run_rule(
        self, rule: _Rule, variables: dict[str, Any], where: tuple[_Node, Any, Place], ratchet: _Ratchet
    ) -> None:
        node, new, place = where
        kind = node.schema.type
        try:
            if rule.program.evaluate(variables) is True:
                return
        except Exhausted as error:
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._found.append(invalid(text_of(place), kind, f"'{error}': {text}: {rule.text}"))
            raise _OutOfBudget from None
        except EvaluationError as error:
            self._found.append(invalid(text_of(place), kind, _evaluation_text(str(error), rule)))
            return
        shown_value = OMIT_VALUE if kind in ("object", "array") else shown(new)
        problem = _broken(rule, _at(place, rule.field_path), shown_value, _message(rule, variables))
        tolerated = not rule.uses_old and ratchet.tolerates
        (self.tolerated if tolerated else self._found).append(problem)


def _at(place: Place, inner: Place) -> str:
    steps: list[str | int] = []
    while inner is not None:
        inner, step = inner
        steps.append(step)
    for step in reversed(steps):
        place = (place, step)
    return text_of(place)


def _evaluation_text(error: str, rule: _Rule) -> str:
    if error.startswith("no such overload"):
        text = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {text}: {rule.text}"
    return f"{error} evaluating rule: {rule.text}"


def _message(rule: _Rule, variables: dict[str, Any]) -> str:
    """The text of a broken rule: what its expression gives, if that is a usable text; else what is written."""
    if rule.message is not None:
        try:
            said = rule.message.evaluate(variables)
        except EvaluationError:
            said = ""
        text = said.strip() if isinstance(said, str) else ""
        if text and len(text.encode()) <= _LONGEST_MESSAGE and "\n" not in text:
            return text
    written = str(rule.said.get("message", ""))
    return written.strip() if written else f"failed rule: {rule.text}"


def _broken(rule: _Rule, path: str, value: Any, detail: str) -> FieldError:
    reason = rule.said.get("reason")
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if reason == "FieldValueDuplicate":
        return FieldError("FieldValueDuplicate", path, value)
    return invalid(path, value, detail)
