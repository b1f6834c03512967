"""The server process of a member, and what it is asked through its socket."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from konverge_operators.database.mariadb.archive.temporary_server import sync
from konverge_operators.database.mariadb.member.decisions import EMPTY, Position
from konverge_operators.database.mariadb.member.positions import (
    NO_UUID,
    mark_safe,
    parse_recovery,
    read_state,
    sync_directory,
    write_history,
)

__all__ = ["Address", "Server", "ServerError", "View"]

_SOCKET: Final = "./mariadb.sock"
"""Below the data directory, which is the working directory: a path to a socket may have 107 characters only."""
_DIVERGED: Final = "diverged"
_COMPLETE: Final = "complete"
_REVERSAL: Final = "Reversing history"
_VARIABLES: Final = (
    "wsrep_cluster_status",
    "wsrep_cluster_state_uuid",
    "wsrep_last_committed",
    "wsrep_local_state",
    "wsrep_ready",
)
_OBSERVE: Final = f"""\
SHOW GLOBAL STATUS WHERE Variable_name IN ({", ".join(f"'{name}'" for name in _VARIABLES)});
SELECT 'read_only', @@global.read_only;
SELECT 'view', view_seqno FROM mysql.wsrep_cluster;
SELECT 'member', node_name FROM mysql.wsrep_cluster_members;
"""
_CLIENTS: Final = "SELECT id FROM information_schema.processlist WHERE user NOT IN ('root', 'system user')"
_LEAD: Final = """\
SET @number = (
  SELECT CAST(VARIABLE_VALUE AS UNSIGNED) + 1 FROM information_schema.GLOBAL_STATUS
  WHERE VARIABLE_NAME = 'wsrep_last_committed'
);
SET SESSION wsrep_gtid_seq_no = @number;
START TRANSACTION;
INSERT INTO mysql.gtid_slave_pos (domain_id, sub_id, server_id, seq_no) VALUES (0, 0, 0, 0);
DELETE FROM mysql.gtid_slave_pos WHERE domain_id = 0 AND sub_id = 0;
COMMIT;
SET GLOBAL read_only = OFF;
"""
"""A transaction that changes nothing and has its number with it: from then on all members count from the same one.

A statement that fails uses up a number. It is in no binary log, so a member that bootstraps does not know it, while one
that joins does: without this their transactions would have different numbers. Galera's own number is at least as large.
"""
_JOINING, _DONOR, _SYNCED = "1", "2", "4"
_RENEWAL: Final = 1.0
_QUOTED: Final = re.compile(r"near '.*", re.DOTALL)


class ServerError(Exception):
    """The server does not answer, or refuses a statement."""


@dataclass(frozen=True)
class Address:
    """Where a member is, and where its data is. `root` is the mounted claim."""

    name: str
    cluster: str
    ip: str
    root: Path
    defaults: str
    provider: str
    tls: str = ""
    """The directory of `tls.crt`, `tls.key` and `ca.crt`; "" without TLS."""

    @property
    def data(self) -> Path:
        return self.root / "data"


@dataclass(frozen=True)
class View:
    """What a server says of its component."""

    is_primary: bool
    synced: bool
    position: Position
    members: tuple[str, ...]
    is_complete: bool
    read_only: bool
    is_transfer_unfinished: bool = False
    """Whether it fetches what it lacks from others, which may last long. It is in no component meanwhile."""


class Server:
    """The server of a member."""

    def __init__(self, address: Address, secrets: Mapping[str, str]) -> None:
        self._address, self._secrets = address, dict(secrets)
        self._process: subprocess.Popen[bytes] | None = None
        self._last: deque[str] = deque(maxlen=200)

    # Data

    @property
    def diverged(self) -> bool:
        """Whether this data was found to have writes that the component does not have."""
        return (self._address.root / _DIVERGED).exists()

    def read_position(self, renew: Callable[[], None]) -> Position:
        """Return the position of the data, while the server does not run.

        `renew` is called every second: the recovery after a crash may last long.

        Raises: ServerError when it cannot be found out.
        """
        found = read_state(self._address.data, is_complete=self._mark.exists())
        if found is None:
            found = self._recover(renew)
            if found != EMPTY:
                write_history(self._address.data, found.uuid)
        return found

    def initialize(self, script: str, renew: Callable[[], None]) -> None:
        """Create the data unless it exists: complete, or not at all. `renew` is called every second.

        Raises: ServerError.
        """
        address = self._address
        if address.data.exists():
            return
        new = address.root / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        options = [f"--defaults-file={address.defaults}", f"--datadir={new}", "--debug-no-sync"]
        _run(["mariadb-install-db", *options, "--auth-root-authentication-method=normal", "--skip-test-db"], renew)
        _run(["mariadbd", *options, "--wsrep-on=OFF", "--bootstrap"], renew, script)
        sync(new)
        new.rename(address.data)

    def prepare_to_join(self) -> None:
        """Create the directory that a member without data fetches it into, and a state that says that it has none."""
        self._address.data.mkdir(exist_ok=True)
        write_history(self._address.data, NO_UUID)

    def mark_complete(self) -> None:
        """Record that this member has all data: it has served since it was started."""
        if not self._mark.exists():
            self._mark.touch()
            sync_directory(self._address.root)

    @property
    def _mark(self) -> Path:
        return self._address.root / _COMPLETE

    # The process

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, peers: Sequence[str], position: Position, donors: Sequence[str] = ()) -> None:
        """Start the server: with the addresses of others it joins them, without it bootstraps."""
        options = [*self._options(), f"--wsrep-cluster-address=gcomm://{','.join(peers)}"]
        if position != EMPTY:  # or a crashed server would begin a new history
            options.append(f"--wsrep-start-position={position.uuid}:{position.seqno}")
        if peers:
            self._mark.unlink(missing_ok=True)  # all data may be fetched
            sync_directory(self._address.root)
            options.append(f"--wsrep-sst-donor={','.join([*donors, ''])}")
        else:
            mark_safe(self._address.data, position.uuid)
            options.append("--wsrep-new-cluster")
        self._last.clear()
        self._process = subprocess.Popen(
            ["mariadbd", *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stderr is not None
        threading.Thread(target=self._copy, args=(self._process.stderr,), daemon=True).start()

    def stop(self, timeout: float = 100.0) -> None:
        """Stop the server and wait for its end."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.clear()

    def clear(self) -> None:
        """End what a dead server has left behind: a transfer of data goes on without it."""
        if self._process is None:
            return
        session = self._process.pid
        for _ in range(3):
            for pid in _members_of_session(session):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait()
        if any(_REVERSAL in line for line in self._last):
            (self._address.root / _DIVERGED).touch()
        self._process = None

    # Statements

    def observe(self) -> View:
        """Return what the server says.

        Raises: ServerError when it does not answer.
        """
        values: dict[str, str] = {}
        members: list[str] = []
        for name, value in (line.split("\t", 1) for line in self._query(_OBSERVE, partial=True)):
            if name == "member":
                members.append(value)
            values[name] = value
        seqno = int(values.get("wsrep_last_committed", -1))
        state = values.get("wsrep_local_state", "")
        is_primary = values.get("wsrep_cluster_status") == "Primary" and state in (_DONOR, "3", _SYNCED)
        return View(
            is_primary=is_primary,
            synced=is_primary and state in (_DONOR, _SYNCED) and values.get("wsrep_ready") == "ON",
            position=Position(values.get("wsrep_cluster_state_uuid", ""), seqno),
            members=tuple(members),
            is_complete="view" in values and seqno >= int(values["view"]),
            read_only=values.get("read_only", "1") == "1",
            is_transfer_unfinished=state == _JOINING,
        )

    def accept_writes(self) -> None:
        """Let clients write, after all members were given the same number of the next transaction.

        Raises: ServerError.
        """
        self._query(_LEAD)

    def reject_writes(self) -> None:
        """Refuse writes, and end the connections of clients: they find the primary through its Service.

        Raises: ServerError.
        """
        self._query("SET GLOBAL read_only = ON;")
        for client in self._query(f"{_CLIENTS};"):
            with suppress(ServerError):
                self._query(f"KILL {int(client)};")

    def _query(self, statement: str, *, partial: bool = False) -> list[str]:
        """Return the lines of a result; with `partial` also those before a statement that was refused."""
        command = ["mariadb", "--no-defaults", f"--socket={_SOCKET}", "--user=root", "--batch", "--skip-column-names"]
        env = {**os.environ, "MYSQL_PWD": self._secrets["SUPERUSER_PASSWORD"]}
        try:
            done = subprocess.run(
                command,
                input=statement.encode(),
                cwd=self._address.data,
                env=env,
                capture_output=True,
                timeout=5,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ServerError(str(error)) from error
        lines = done.stdout.decode().splitlines()
        if done.returncode and not (partial and lines):
            raise ServerError(done.stderr.decode()[-300:])
        return lines

    def _options(self) -> list[str]:
        address, scheme = self._address, "ssl" if self._address.tls else "tcp"
        provider = {
            "gmcast.listen_addr": f"{scheme}://{address.ip}:4567",
            "ist.recv_addr": f"{address.ip}:4568",
            "pc.recovery": "no",  # decisions.py has the rules of a recovery
            "pc.wait_prim_timeout": "PT15S",
            "gcache.size": "128M",
            **_encryption(address.tls),
        }
        return [
            f"--defaults-file={address.defaults}",
            f"--datadir={address.data}",
            f"--socket={_SOCKET}",
            f"--pid-file={address.data / 'mariadbd.pid'}",
            f"--tmpdir={os.environ.get('TMPDIR', '/tmp')}",
            f"--bind-address={address.ip}",
            "--read-only=ON",
            "--wsrep-on=ON",
            f"--wsrep-provider={address.provider}",
            f"--wsrep-provider-options={';'.join(f'{name}={value}' for name, value in provider.items())}",
            f"--wsrep-cluster-name={address.cluster}",
            f"--wsrep-node-name={address.name}",
            f"--wsrep-node-address={address.ip}",
            f"--wsrep-sst-receive-address={address.ip}",
            "--wsrep-sst-method=rsync",
        ]

    def _recover(self, renew: Callable[[], None]) -> Position:
        command = ["mariadbd", *self._options(), "--wsrep-recover", "--wsrep-cluster-address=gcomm://"]
        output = _run(command, renew)
        found = parse_recovery(output)
        if found is None:
            raise ServerError(f"mariadbd --wsrep-recover has printed no position: {output[-500:]}")
        return found

    def _copy(self, output: IO[bytes]) -> None:
        """Copy the log of the server to that of the container, and remember its end."""
        with output:
            for line in output:
                text = line.decode(errors="replace")
                self._last.append(text)
                sys.stderr.write(text)
                sys.stderr.flush()


def _encryption(directory: str) -> dict[str, str]:
    """Return the options of Galera for TLS. Members verify each other: nobody without a certificate joins."""
    if not directory:
        return {}
    files = {"socket.ssl_ca": "ca.crt", "socket.ssl_cert": "tls.crt", "socket.ssl_key": "tls.key"}
    return {"socket.ssl": "yes", **{name: f"{directory}/{file}" for name, file in files.items()}}


def _run(command: Sequence[str], renew: Callable[[], None], stdin: str = "") -> str:
    """Return what a program has written to its standard error; call `renew` every second until it ends.

    A failure does not quote what the program has read.
    """
    with _renewing(renew):
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        shown = done.stderr or done.stdout
        shown = _QUOTED.sub("near (not shown)", shown) if stdin else shown
        raise ServerError(f"{command[0]}: {shown[-1000:]}")
    return done.stderr


@contextmanager
def _renewing(renew: Callable[[], None]) -> Generator[None]:
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(_RENEWAL):
            renew()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _members_of_session(session: int) -> list[int]:
    """Return the processes of a session."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields: list[Any] = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found
