"""A user without privileges runs containers too: in a user namespace, and without any namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import konverge_cluster
from process_clusters import LIMIT, readable_python

pytestmark = pytest.mark.processes

NOBODY = 65534
PROGRAM = """
    import asyncio, os, sys
    sys.path.insert(0, sys.argv[1])
    from konverge_cluster.processes.supervisors import Command, Mount, Supervisor

    async def main(directory, namespaces):
        supervisor = await Supervisor.start(namespaces=namespaces)
        root = os.path.join(directory, "root") if supervisor.namespaces else ""
        mounts = [Mount(directory, "/var/lib/konverge-absent", readonly=False)]
        place = "/var/lib/konverge-absent" if root else directory
        script = f"setsid sleep 98781 & id -u > {place}/uid; exit 3"
        command = Command(
            id="c", argv=["/bin/sh", "-c", script], env={}, root=root, mounts=mounts, log=directory + "/log"
        )
        exit_ = await supervisor.run(command).exited
        await supervisor.close()
        with open(directory + "/uid") as file:
            print(supervisor.namespaces, exit_.code, exit_.error, file.read().strip())

    os.mkdir(sys.argv[2] + "/root")
    asyncio.run(main(sys.argv[2], sys.argv[3] == "True"))
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """Return a directory that another user can enter and write to."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.mark.parametrize("namespaces", [True, False])
def test_a_user_without_privileges_runs_containers(directory: Path, namespaces: bool) -> None:
    package = Path(konverge_cluster.__file__).parent
    sources = directory / "sources" / "konverge_cluster"
    shutil.copytree(package / "processes", sources / "processes")
    shutil.copy(package / "__init__.py", sources)
    arguments = [str(directory / "sources"), str(directory), str(namespaces)]
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}

    found = subprocess.run(
        [readable_python(), "-I", "-c", textwrap.dedent(PROGRAM), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd="/",
        **other,  # type: ignore[call-overload]
    )

    assert found.returncode == 0, found.stderr
    user = str(NOBODY if os.getuid() == 0 else os.getuid())
    assert found.stdout.split() == [str(namespaces), "3", user], found.stderr
