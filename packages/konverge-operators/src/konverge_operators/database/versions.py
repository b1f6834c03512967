"""Versions of an engine: what a version of the spec means, and what an engine refuses in a spec."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from konverge_operators.database.api import Database
from konverge_operators.database.engine import Engine, Major

__all__ = ["find_major", "find_violation", "is_supported", "major_of", "resolve_version", "running_version"]


def find_major(majors: Sequence[Major], version: str) -> Major | None:
    """Return the major version that a version belongs to, or None if the operator does not know it."""
    return next((one for one in majors if version == one.name or version.startswith(f"{one.name}.")), None)


def major_of(majors: Sequence[Major], version: str) -> str:
    """Return the name of the major version that a version belongs to; of an unknown one the part before its point."""
    major = find_major(majors, version)
    return major.name if major is not None else version.partition(".")[0]


def resolve_version(majors: Sequence[Major], version: str) -> str:
    """Return the version to run: a major alone means its newest minor. An unknown major stays as it is."""
    major = find_major(majors, version)
    return major.newest if major is not None and major.name == version else version


def is_supported(major: Major, today: date) -> bool:
    """Report whether a major version still gets fixes."""
    return today <= major.supported_until


def running_version(database: Database, engine: Engine, data: str) -> str:
    """Return the version that the members run: that of the spec, unless the data belongs to another major version."""
    major = find_major(engine.majors, database.spec.version)
    if not data or major is None or data == major.name:
        return resolve_version(engine.majors, database.spec.version)
    last = find_major(engine.majors, database.status.version)
    return database.status.version if last is not None and last.name == data else resolve_version(engine.majors, data)


def find_violation(database: Database, engine: Engine, data: str = "") -> str:
    """Return what an engine refuses in a spec, or "". `data` is the major version of the data, if there is any."""
    spec = database.spec
    major = find_major(engine.majors, spec.version)
    if major is None:
        known = ", ".join(one.name for one in engine.majors)
        return f"version {spec.version} is not known: use one of {known}, with or without a minor"
    minor = spec.version.removeprefix(major.name).removeprefix(".")
    if minor and not minor.isdigit():
        return f"version {spec.version} does not exist: {major.name} has minors with one number, such as {major.newest}"
    if data not in ("", major.name, *major.upgrades_from):
        return f"data of version {data} cannot become {spec.version}"
    return engine.find_violation(database)
