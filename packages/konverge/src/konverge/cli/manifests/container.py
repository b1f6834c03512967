"""The image of an operator."""

from __future__ import annotations

import json

from konverge.cli.manifests.release import Release

__all__ = ["dockerfile"]


def dockerfile(release: Release) -> str:
    """Return a Dockerfile that installs konverge and the operator; build it where TARGET was given.

    An operator of an installed distribution is installed from it; any other is copied with its folder.
    """
    if release.requirement:
        return _lines(release, release.requirement, copied="")
    place = release.target.partition(":")[0]
    is_path = "/" in place or place.endswith(".py")
    top = place.partition("/" if is_path else ".")[0]
    # Arguments as JSON: a path may have spaces in it, and none of it is read by a shell.
    return _lines(release, "konverge", copied=f"COPY {json.dumps([top, f'./{top}'])}\n")


def _lines(release: Release, requirement: str, *, copied: str) -> str:
    return f"""\
# Made by `konverge manifests {release.target}`: docker build -t {release.image} .
FROM python:3.12-slim
RUN pip install --no-cache-dir {requirement}
WORKDIR /app
{copied}ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["konverge"]
CMD {json.dumps(["run", release.target])}
"""
