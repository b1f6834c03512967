"""An environment: the variables of an expression with their types, and what may be called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from konverge_cluster.cel.checking import Checked, check
from konverge_cluster.cel.costs import Sizes, estimate
from konverge_cluster.cel.evaluation import Budget, compile_node
from konverge_cluster.cel.functions import Library
from konverge_cluster.cel.kubernetes import add_kubernetes
from konverge_cluster.cel.lists import add_lists
from konverge_cluster.cel.literals import literal_messages
from konverge_cluster.cel.optionals import add_optionals
from konverge_cluster.cel.parsing import ParseFault, parse
from konverge_cluster.cel.standard import add_standard
from konverge_cluster.cel.syntax import Message, Node
from konverge_cluster.cel.texts import add_texts
from konverge_cluster.cel.types import Type
from konverge_cluster.cel.values import EvaluationError

__all__ = ["STEPS", "CompileError", "Environment", "Program"]

STEPS: Final = 1_000_000
"""How many steps the loops of one expression may take."""


class CompileError(ValueError):
    """An expression that cannot be compiled; the message shows each mistake under the text.

    `stage` is what failed in the words of the server: "compilation", or "instantiation" when a constant cannot be
    converted to the type that the expression asks for.
    """

    def __init__(self, message: str, stage: str = "compilation") -> None:
        super().__init__(message)
        self.stage = stage


@cache
def kubernetes_library() -> Library:
    """Everything that an expression in Kubernetes may call."""
    library = Library()
    for add in (add_standard, add_optionals, add_texts, add_lists, add_kubernetes):
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
        self.result = checked.types[node]
        self.used = frozenset(checked.used)

    def evaluate(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Give the value for these variables.

        Raises: EvaluationError.
        """
        return self._evaluate({**variables, "#budget": budget or Budget(STEPS)})

    def most_cost(self, sizes: Sizes) -> int:
        """The highest cost that an evaluation may have, in the units of the real server."""
        return estimate(self._node, self._checked, sizes)


class Environment:
    """Names and types of variables. Compiling the same text twice gives two programs that do the same."""

    def __init__(self, variables: Mapping[str, Type]) -> None:
        self._variables = dict(variables)

    def compile(self, text: str) -> Program:
        """Compile an expression.

        Raises: CompileError.
        """
        try:
            node = parse(text)
        except ParseFault as fault:
            raise CompileError(_shown(text, fault.messages)) from None
        checked, messages = check(node, kubernetes_library(), self._variables)
        messages = messages or literal_messages(node, checked)
        if messages:
            raise CompileError(_shown(text, messages))
        try:
            return Program(node, checked)
        except EvaluationError as error:
            raise CompileError(str(error), "instantiation") from None


def _wide(character: str, narrow: str, wide: str) -> str:
    return wide if character > "\x7f" else narrow


def _shown(text: str, messages: list[Message]) -> str:
    """Write messages as the server does: where and what, the line, and a mark under the place."""
    lines = text.split("\n")
    ends = [0]
    for line in lines:
        ends.append(ends[-1] + len(line) + 1)
    written = []
    for message in sorted(messages, key=lambda each: each.at):
        number = next((at for at in range(len(lines)) if message.at < ends[at + 1]), len(lines) - 1)
        column = message.at - ends[number]
        line = lines[number].replace("\t", " ")
        mark = "".join(_wide(each, ".", "\uff0e") for each in line[:column])
        mark += _wide(line[column : column + 1], "^", "\uff3e")
        written.append(f"ERROR: <input>:{number + 1}:{column + 1}: {message.text}\n | {line}\n | {mark}")
    return "\n".join(dict.fromkeys(written))
