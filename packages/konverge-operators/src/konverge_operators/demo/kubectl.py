"""`kubectl wait` in the demo, where kubectl is installed: what a user's script waits with."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Kubectl", "find_kubectl"]


@dataclass(frozen=True)
class Kubectl:
    """The program, and the options that select the cluster and the namespace."""

    program: str
    options: tuple[str, ...]

    async def wait_ready(self, resource: str, timeout: float) -> None:
        """Wait until an object has the condition Ready.

        Raises: ChildProcessError with what kubectl printed, when it failed.
        """
        arguments = (*self.options, "wait", resource, "--for=condition=Ready", f"--timeout={timeout:g}s")
        process = await asyncio.create_subprocess_exec(
            self.program,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise ChildProcessError(f"kubectl wait: {output.decode(errors='replace').strip()}")


def find_kubectl(cluster: tuple[str, ...], namespace: str, folder: Path) -> Kubectl | None:
    """Return kubectl for a cluster, which its options select; None if it is not installed.

    What it learns of the cluster it keeps in the folder, not in the user's.
    """
    program = shutil.which("kubectl")
    options = (*cluster, "--namespace", namespace, "--cache-dir", str(folder / "kubectl-cache"))
    return None if program is None else Kubectl(program, options)
