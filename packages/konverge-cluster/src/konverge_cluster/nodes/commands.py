"""What a container does by itself: its command, if it is simple enough to follow, and images that cannot be pulled.

    sleep 30                                        runs for 30 s
    sh -c 'echo hello; sleep 2 && exit 3'           runs for 2 s, exits with 3
    sh -c '[ "$JOB_COMPLETION_INDEX" = 1 ] && exit 1; sleep 5'

Rules that hold here:

1. A command is followed only if every part of it is known: `sleep`, `exit`, `true`, `false`, `:`, `echo`, `test` and
   `[ ]` with one comparison, joined by `;`, new lines, `&&` and `||`. Variables are those of the container's `env`:
   plain values, and the name, namespace, labels and annotations of its pod. Every other command runs as if there were
   none.
2. An image cannot be pulled if its tag is `does-not-exist`, `nonexistent` or `invalid`, or its registry starts with
   `invalid.`.
3. A programmed behavior wins: over the command if it sets how a run ends, over the image if it sets `pull_fails`.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from konverge_cluster.nodes.behaviors import Behavior

__all__ = ["CommandResult", "default_behavior", "hook_result", "is_missing_image", "run_command"]

_SHELLS: Final = ("sh", "bash", "ash", "dash")
_MISSING_TAGS: Final = ("does-not-exist", "nonexistent", "invalid")
_SILENT: Final = {"true": 0, ":": 0, "echo": 0, "false": 1}
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_RUN: Final = 10 * 365 * 86400.0
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", re.ASCII)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+)|\((\w+)\))", re.ASCII)
_COMPARISONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "-eq": lambda one, other: int(one) == int(other),
    "-ne": lambda one, other: int(one) != int(other),
    "-lt": lambda one, other: int(one) < int(other),
    "-le": lambda one, other: int(one) <= int(other),
    "-gt": lambda one, other: int(one) > int(other),
    "-ge": lambda one, other: int(one) >= int(other),
}


@dataclass(frozen=True)
class CommandResult:
    """How long a command runs, infinity if for ever, and its exit code."""

    seconds: float
    exit_code: int
    exited: bool = False


def default_behavior(behavior: Behavior, container: Mapping[str, Any], pod: Mapping[str, Any]) -> Behavior:
    """Return a programmed behavior, completed by what the image and the command of the container say."""
    if behavior.pull_fails is None and is_missing_image(container["image"]):
        behavior = replace(behavior, pull_fails=True)
    if (behavior.runs_for, behavior.exit_code, behavior.crashes) != (None, None, None):
        return behavior
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    result = run_command(words, _environment(container, pod)) if words else None
    if result is None:
        return behavior
    return replace(behavior, runs_for=min(result.seconds, _LONGEST_RUN), exit_code=result.exit_code)


def hook_result(hook: Mapping[str, Any], container: Mapping[str, Any], pod: Mapping[str, Any]) -> CommandResult:
    """Return how long a lifecycle hook of a container takes; one that cannot be followed takes no time."""
    if hook.get("sleep"):
        return CommandResult(float(hook["sleep"].get("seconds", 0)), 0)
    words = (hook.get("exec") or {}).get("command") or ()
    result = run_command(words, _environment(container, pod)) if words else None
    return result or CommandResult(0.0, 0)


def is_missing_image(image: str) -> bool:
    """Report whether an image says by its name that it cannot be pulled."""
    name = image.partition("@")[0]
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return name.startswith("invalid.") or (bool(colon) and tag in _MISSING_TAGS)


def run_command(words: Sequence[str], environment: Mapping[str, str]) -> CommandResult | None:
    """Return how a command ends; None if it is not simple enough to follow."""
    try:
        if words[0].rpartition("/")[2] in _SHELLS:
            return _run_script(words[2], environment) if len(words) > 2 and words[1] == "-c" else None
        if words[0] == "exit":
            return None  # not a program
        return _run_simple([_expand(word, environment, parentheses=True) for word in words])
    except ValueError:
        return None


def _run_script(script: str, environment: Mapping[str, str]) -> CommandResult:
    """Run a script: commands joined by `;`, new lines, `&&` and `||`.

    Raises: ValueError for one that is not simple enough.
    """
    seconds, code = 0.0, 0
    for joined_by, words in _commands(script):
        if (joined_by == "&&" and code != 0) or (joined_by == "||" and code == 0):
            continue
        result = _run_simple([_expand(word, environment) for word in words])
        seconds, code = seconds + result.seconds, result.exit_code
        if result.exited or math.isinf(seconds):
            break
    return CommandResult(seconds, code)


def _commands(script: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command with the operator before it.

    Raises: ValueError for unbalanced quotes and for other operators of the shell.
    """
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    joined_by, words = ";", list[str]()
    for token in [*lexer, ";"]:
        if token in (";", "&&", "||"):
            if words:
                yield joined_by, words
            joined_by, words = token, []
        elif set(token) <= set(";&|<>()"):
            raise ValueError(f"operator {token} is not followed")
        else:
            words.append(token)


def _run_simple(words: Sequence[str]) -> CommandResult:
    program, arguments = words[0].rpartition("/")[2], words[1:]
    if program in _SILENT:
        return CommandResult(0.0, _SILENT[program])
    if program == "sleep" and arguments:
        return CommandResult(sum(_duration(one) for one in arguments), 0)
    if program == "exit" and len(arguments) <= 1:
        return CommandResult(0.0, int(arguments[0]) % 256 if arguments else 0, exited=True)
    if program == "[" and arguments[-1:] == ["]"]:
        return CommandResult(0.0, _compare(arguments[:-1]))
    if program == "test":
        return CommandResult(0.0, _compare(arguments))
    raise ValueError(f"command {program} is not followed")


def _compare(words: Sequence[str]) -> int:
    if len(words) != 3 or words[1] not in _COMPARISONS:
        raise ValueError("the condition is not followed")
    return 0 if _COMPARISONS[words[1]](words[0], words[2]) else 1


def _duration(text: str) -> float:
    if text in ("infinity", "inf"):
        return math.inf
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"sleep {text}: not a duration")
    return float(found[1]) * _UNITS[found[2]]


def _expand(word: str, environment: Mapping[str, str], *, parentheses: bool = False) -> str:
    """Replace variables: in a script by the shell, in a command by the kubelet, which only knows `$(NAME)`.

    Raises: ValueError for an unknown variable or another expansion.
    """

    def value(found: re.Match[str]) -> str:
        name = found[3] if parentheses else found[1] or found[2]
        if name is None or name not in environment:
            raise ValueError(f"variable {found[0]} is not known")
        return environment[name]

    expanded = _VARIABLE.sub(value, word)
    if "`" in expanded or "$" in expanded:
        raise ValueError(f"{word} is not followed")
    return expanded


def _environment(container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for one in container.get("env") or ():
        path = ((one.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
        value = _field(path, pod["metadata"]) if path else one.get("value", "")
        if value is not None and (path or "valueFrom" not in one):
            found[one["name"]] = value
    return found


def _field(path: str, metadata: Mapping[str, Any]) -> str | None:
    """Return the value of a downward API field about metadata, None for other fields."""
    mapped = re.fullmatch(r"metadata\.(labels|annotations)\['([^']+)'\]", path)
    if mapped is not None:
        return str((metadata.get(mapped[1]) or {}).get(mapped[2], ""))
    return str(metadata.get(path.removeprefix("metadata."), "")) if path.startswith("metadata.") else None
