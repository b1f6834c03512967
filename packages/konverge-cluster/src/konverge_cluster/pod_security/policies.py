"""Policies of namespaces: which level, of which version, is enforced, warned about and audited.

A namespace requests them with the labels `pod-security.kubernetes.io/enforce`, `enforce-version`, and the same for
`warn` and `audit`. A namespace without labels is privileged: everything is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from konverge_cluster.api.field_errors import FieldError, invalid

__all__ = ["BASELINE", "PRIVILEGED", "RESTRICTED", "LevelVersion", "Policy", "read_policy"]

PRIVILEGED: Final = 0
BASELINE: Final = 1
RESTRICTED: Final = 2

_LEVELS: Final = ("privileged", "baseline", "restricted")
_PREFIX: Final = "pod-security.kubernetes.io/"
_VERSION: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]*)", re.ASCII)
_MAX_INT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LevelVersion:
    """A level of a version: `minor` is that of Kubernetes 1.x, None for the latest. A greater level is stricter."""

    level: int = PRIVILEGED
    minor: int | None = None

    def __str__(self) -> str:
        return f"{_LEVELS[self.level]}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


@dataclass(frozen=True, slots=True)
class Policy:
    """What a namespace requests in each mode."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


def read_policy(labels: Mapping[str, str] | None) -> tuple[Policy, list[FieldError]]:
    """Return the policy of a namespace with these labels, and the errors in them.

    A value that cannot be read counts as the strictest one in `enforce`, and as privileged in the other modes.
    """
    errors: list[FieldError] = []
    labels = labels or {}
    enforce = _read_mode(labels, "enforce", RESTRICTED, errors)
    audit = _read_mode(labels, "audit", PRIVILEGED, errors)
    warn = _read_mode(labels, "warn", PRIVILEGED, errors)
    if f"{_PREFIX}warn" not in labels and labels.get(f"{_PREFIX}enforce") in _LEVELS and enforce.level > warn.level:
        minor = warn.minor if f"{_PREFIX}warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    return Policy(enforce, audit, warn), errors


def _read_mode(labels: Mapping[str, str], mode: str, unreadable: int, errors: list[FieldError]) -> LevelVersion:
    level, minor = PRIVILEGED, None
    text = labels.get(_PREFIX + mode)
    if text in _LEVELS:
        level = _LEVELS.index(text)
    elif text is not None:
        level = unreadable
        errors.append(invalid(_path(mode), text, f"must be one of {', '.join(_LEVELS)}"))
    text = labels.get(f"{_PREFIX}{mode}-version", "latest")
    match = _VERSION.fullmatch(text)
    if match and int(match[1]) <= _MAX_INT:
        minor = int(match[1])
    elif text != "latest":
        errors.append(invalid(_path(f"{mode}-version"), text, 'must be "latest" or "v1.x"'))
    return LevelVersion(level, minor)


def _path(label: str) -> str:
    return f"metadata.labels[{_PREFIX}{label}]"
