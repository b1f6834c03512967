"""pg_upgrade: the container of the Job, and what it has said.

The new directory is a copy: pg_upgrade leaves the old one as it is but for its logs, and so it can always be started.
The new one copies the old one's checksums and segment size, gets its name only when it is complete and checked, and is
started with the parameters of the spec, so that a value which the new version refuses is found before the members stop
being able to go back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from konverge_operators.database.engine import EngineError
from konverge_operators.database.postgresql.members import DATA, data_directory
from konverge_operators.database.postgresql.versions import upgrade_image
from konverge_operators.manifests import Json

__all__ = ["deletion_script", "system_identifier", "upgrade_container"]

_SCRIPT: Final = (Path(__file__).parent / "upgrade.sh").read_text()


def upgrade_container(major: str, version: str, parameters: Mapping[str, Any]) -> Json:
    """Return the container that upgrades the data of a major version to a version."""
    lines = (f"{name} = {_quoted(str(value))}" for name, value in sorted(parameters.items()))
    env = {
        "OLD_MAJOR": major,
        "OLD": data_directory(major),
        "NEW": data_directory(version),
        "PARAMETERS": "\n".join(lines),
    }
    return {
        "image": upgrade_image(version),
        "command": ["sh", "-c", _SCRIPT],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def system_identifier(message: str) -> str:
    """Return the identifier of the new data from what the container has said.

    Raises: EngineError when it has not said it.
    """
    try:
        found = cast("dict[str, Any]", json.loads(message))
        return str(int(found["systemIdentifier"]))
    except (ValueError, TypeError, KeyError) as error:
        raise EngineError(f"the Job of the upgrade has not said its result: {message[:200]!r}") from error


def deletion_script(version: str) -> str:
    """Return the script that deletes the directories of other major versions than this one."""
    return f'for one in {DATA}/pgdata-*; do test "$one" = {data_directory(version)} || rm -rf "$one"; done'


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
