"""Environments: the variables of an expression with their types, and the function library."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from konverge_cluster.cel.checker import Checked, check
from konverge_cluster.cel.compiler import Budget, compile_node
from konverge_cluster.cel.costs import Sizes, estimate
from konverge_cluster.cel.functions import Library
from konverge_cluster.cel.kubernetes import add_kubernetes
from konverge_cluster.cel.lists import add_lists
from konverge_cluster.cel.literals import literal_messages
from konverge_cluster.cel.optionals import add_optionals
from konverge_cluster.cel.parser import ParseError, parse
from konverge_cluster.cel.recursion import deep_recursion
from konverge_cluster.cel.standard import add_standard
from konverge_cluster.cel.strings import add_strings
from konverge_cluster.cel.syntax import NOWHERE, Message, Node, depth_of
from konverge_cluster.cel.types import Type
from konverge_cluster.cel.values import EvaluationError

__all__ = ["MAX_STEPS", "CompileError", "Environment", "Program"]

MAX_STEPS: Final = 1_000_000
"""The maximum number of loop steps in one expression."""

_SHALLOW: Final = 20


class CompileError(ValueError):
    """An expression cannot be compiled; the message shows each error under the text.

    `stage` is the failed stage in the server's terms: "compilation", or "instantiation" when a constant cannot be
    converted to the required type.
    """

    def __init__(self, message: str, stage: str = "compilation") -> None:
        super().__init__(message)
        self.stage = stage


@cache
def kubernetes_library() -> Library:
    """Return the functions that an expression in Kubernetes may call."""
    library = Library()
    for add in (add_standard, add_optionals, add_strings, add_lists, add_kubernetes):
        add(library)
    return library


class Program:
    """A compiled expression.

    `result` is the type of its value, `used` the variables that it reads.
    """

    def __init__(self, node: Node, checked: Checked) -> None:
        self._node = node
        self._checked = checked
        self._evaluate = compile_node(node, checked)
        self._is_deep = depth_of(node) > _SHALLOW
        self.result = checked.types[node]
        self.used = frozenset(checked.used)

    def evaluate(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Return the value for these variables.

        Raises: EvaluationError.
        """
        variables = {**variables, "#budget": budget or Budget(MAX_STEPS)}
        if not self._is_deep:
            return self._evaluate(variables)
        with deep_recursion():
            return self._evaluate(variables)

    def max_cost(self, sizes: Sizes) -> int:
        """Return the maximum cost of an evaluation, in the units of the real server."""
        with deep_recursion():
            return estimate(self._node, self._checked, sizes)


class Environment:
    """Names and types of variables. Compiling the same text twice returns two equivalent programs."""

    def __init__(self, variables: Mapping[str, Type]) -> None:
        self._variables = dict(variables)

    def compile(self, text: str) -> Program:
        """Compile an expression.

        Raises: CompileError.
        """
        try:
            node = parse(text)
        except ParseError as error:
            raise CompileError(_format_messages(text, error.messages)) from None
        with deep_recursion():
            return self._compile(text, node)

    def _compile(self, text: str, node: Node) -> Program:
        checked, messages = check(node, kubernetes_library(), self._variables)
        messages = messages or literal_messages(node, checked)
        if messages:
            raise CompileError(_format_messages(text, messages))
        try:
            return Program(node, checked)
        except EvaluationError as error:
            raise CompileError(str(error), "instantiation") from None


def _wide(character: str, narrow: str, wide: str) -> str:
    return wide if character > "\x7f" else narrow


def _format_messages(text: str, messages: list[Message]) -> str:
    """Format messages as the server does: position and message, the line, and a mark under the position."""
    lines = text.split("\n")
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    written = []
    for message in sorted(messages, key=lambda each: each.at):
        if message.at == NOWHERE:
            written.append(f"ERROR: <input>:-1:0: {message.text}")
            continue
        number = next((at for at in range(len(lines)) if message.at < ends[at + 1]), len(lines) - 1)
        column = message.at - ends[number]
        line = lines[number].replace("\t", " ")
        mark = "".join(_wide(each, ".", "\uff0e") for each in line[:column])
        mark += _wide(line[column : column + 1], "^", "\uff3e")
        written.append(f"ERROR: <input>:{number + 1}:{column + 1}: {message.text}\n | {line}\n | {mark}")
    return "\n".join(dict.fromkeys(written))
