"""A server on a directory of its own, that nobody else reaches: what dumps are loaded into.

It writes nothing to the disk on purpose until it has stopped: then `sync` does, before the data counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from konverge_operators.database.archive.stores import ArchiveError

__all__ = ["TemporaryServer", "running_server", "sync", "sync_one"]

_SOCKET: Final = "./temporary.sock"
"""Below the data directory, which is the working directory: a path to a socket may have 107 characters only."""
_USER: Final = "konverge_restore"
_PACKET: Final = "--max-allowed-packet=1G"
_START: Final = 300.0
_INTERVAL: Final = 0.1
_LAST_LINES: Final = 5
_FIRST: Final = f"""\
RENAME USER root@localhost TO {_USER}@localhost;
DELETE FROM mysql.global_priv WHERE User <> '{_USER}';
DELETE FROM mysql.tables_priv;
DELETE FROM mysql.proxies_priv WHERE User <> '{_USER}';
FLUSH PRIVILEGES;
"""
"""All users of a backup are created from it, the superuser too."""


class TemporaryServer:
    """The server while it runs. Statements are executed as a user of its own, which `finish` deletes."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def execute(self, statements: str, user: str = _USER, password: str = "") -> str:
        """Execute statements, whose text appears in no message; return the rows."""
        done = subprocess.run(
            self._client(user),
            input=statements.encode(),
            cwd=self._data,
            env=_env(password),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise ArchiveError(_error("a statement", done.stderr))
        return done.stdout.decode(errors="replace")

    @contextmanager
    def loading(self, what: str) -> Generator[IO[bytes]]:
        """Execute what is written to the stream; it must end without an error."""
        log = self._data / "load.log"
        with log.open("wb") as errors:
            client = subprocess.Popen(
                self._client(_USER),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=self._data,
                env=_env(),
            )
            assert client.stdin is not None
            try:
                yield client.stdin
                client.stdin.close()
            except BrokenPipeError:
                pass  # it has ended with an error, which follows
            except BaseException:
                client.kill()
                raise
            finally:
                with suppress(BrokenPipeError):
                    client.stdin.close()
                client.wait()
        if client.returncode:
            raise ArchiveError(_error(what, log.read_bytes()))
        log.unlink()

    def finish(self) -> None:
        """Delete the user that everything was executed as."""
        self.execute(f"DROP USER {_USER}@localhost;")

    def _client(self, user: str) -> list[str]:
        options = [f"--socket={_SOCKET}", f"--user={user}", "--batch", "--skip-column-names", "--binary-mode", _PACKET]
        return ["mariadb", "--no-defaults", *options]


@contextmanager
def running_server(data: Path) -> Generator[TemporaryServer]:
    """Create an empty server in a directory, run it, and stop it at the end."""
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    options = ["--no-defaults", f"--datadir={data}", "--debug-no-sync"]
    _run(["mariadb-install-db", *options, "--auth-root-authentication-method=normal", "--skip-test-db"])
    command = ["mariadbd", *options, *_options(data)]
    log = data / "temporary.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output, cwd=data) as process:
        server = TemporaryServer(data)
        try:
            _wait_until_it_answers(process, data, log)
            server.execute(_FIRST, "root")
            yield server
        finally:
            process.terminate()
    if process.returncode:  # what it had in memory is lost
        raise ArchiveError(_error("mariadbd", log.read_bytes()))
    log.unlink()


def sync(directory: Path) -> None:
    """Write all files of a directory to the disk."""
    for root, _, files in os.walk(directory):
        for name in (".", *files):
            path = Path(root) / name
            if path.is_dir() or path.is_file():
                sync_one(path)


def sync_one(path: Path) -> None:
    """Write a file, or the names in a directory, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _options(data: Path) -> Sequence[str]:
    return (
        f"--socket={_SOCKET}",
        f"--pid-file={data / 'temporary.pid'}",
        f"--tmpdir={os.environ.get('TMPDIR', '/tmp')}",
        "--skip-networking",
        "--skip-name-resolve",
        "--skip-log-bin",
        "--skip-slave-start",
        "--wsrep-on=OFF",
        "--innodb-flush-log-at-trx-commit=0",
        "--character-set-server=utf8mb4",
        _PACKET,
    )


def _wait_until_it_answers(process: subprocess.Popen[bytes], data: Path, log: Path) -> None:
    deadline = time.monotonic() + _START
    command = ["mariadb-admin", "--no-defaults", f"--socket={_SOCKET}", "--user=root", "--silent", "ping"]
    while subprocess.run(command, cwd=data, env=_env(), capture_output=True, check=False).returncode:
        if process.poll() is not None or time.monotonic() > deadline:
            raise ArchiveError(_error("mariadbd", log.read_bytes()))
        time.sleep(_INTERVAL)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise ArchiveError(_error(command[0], done.stderr or done.stdout))


def _env(password: str = "") -> Mapping[str, str]:
    """Return the environment of a client: the password of the container's is that of another server."""
    return {**os.environ, "MYSQL_PWD": password}


def _error(what: str, output: bytes) -> str:
    """Return the last lines about errors. Others may quote a statement, which may have a password."""
    lines = output.decode(errors="replace").splitlines()
    errors = [line for line in lines if "ERROR" in line]
    return f"{what}: {'; '.join(errors[-_LAST_LINES:]) or 'it ended without a message'}"
