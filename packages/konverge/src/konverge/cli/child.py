"""Entry point of a command that runs as a child process: it exits when its parent does.

    python -P -m konverge.cli.child run konverge_operators.webapp

The parent holds the write end of the pipe that is standard input of the child. The kernel closes it when the parent
exits, crashes or is killed, so the parent needs no cleanup code. The parent-death signal of Linux does not fit: it is
also sent when only the *thread* that started the child ends.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
import time

__all__ = ["exit_with_parent"]

_GRACE = 2.0


def exit_with_parent() -> None:
    """Exit when the other end of standard input is closed; do nothing if standard input is not a pipe.

    The process receives SIGTERM first, and SIGKILL after two seconds. Reads of standard input return no data.
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
    exit_with_parent()

    from konverge.cli import main

    main(sys.argv[1:], prog_name="konverge")
