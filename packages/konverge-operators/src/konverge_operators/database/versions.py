"""Versions of an engine: what a version of the spec means, and what an engine refuses in a spec."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from konverge_operators.database.api import Database
from konverge_operators.database.engine import Engine, Major

__all__ = ["find_major", "find_violation", "is_supported", "resolve_version"]


def find_major(majors: Sequence[Major], version: str) -> Major | None:
    """Return the major version that a version belongs to, or None if the operator does not know it."""
    return next((one for one in majors if version == one.name or version.startswith(f"{one.name}.")), None)


def resolve_version(majors: Sequence[Major], version: str) -> str:
    """Return the version to run: a major alone means its newest minor. An unknown major stays as it is."""
    major = find_major(majors, version)
    return major.newest if major is not None and major.name == version else version


def is_supported(major: Major, today: date) -> bool:
    """Report whether a major version still gets fixes."""
    return today <= major.supported_until


def find_violation(database: Database, engine: Engine) -> str:
    """Return what an engine refuses in a spec, or ""."""
    spec, running = database.spec, database.status.version
    major = find_major(engine.majors, spec.version)
    if major is None:
        known = ", ".join(one.name for one in engine.majors)
        return f"version {spec.version} is not known: use one of {known}, with or without a minor"
    if running and find_major(engine.majors, running) != major:
        return f"{running} cannot become {spec.version}: major upgrades are not supported yet"
    denied = sorted(set(spec.parameters) & set(engine.denied_parameters))
    return "; ".join(f"parameters.{name}: {engine.denied_parameters[name]}" for name in denied)
