"""The start of a command that another one started: it ends when that one is gone, however it went.

    python -P -m konverge.cli.child run konverge_operators.webapp

The other one holds the far end of the pipe that is standard input here, and the kernel closes it when it dies: killed,
crashed or ended. Nothing has to run for that in the one that dies. A parent-death signal of Linux would come as well
when only the *thread* ends that started the child.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time

__all__ = ["end_with_parent"]

_GRACE = 2.0


def end_with_parent() -> None:
    """Let this process end when the far end of its standard input does; one that is no pipe is left alone.

    It is asked for an orderly end first, and gets two seconds for it. Whoever reads standard input finds it empty.
    """
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_watch, args=(pipe,), name="parent", daemon=True).start()


def _watch(pipe: int) -> None:
    while os.read(pipe, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    end_with_parent()

    from konverge.cli import main

    main(sys.argv[1:], prog_name="konverge")
