"""Run a member until SIGTERM. The environment has its names, its addresses and the passwords."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from konverge_operators.database.mariadb.archive.passwords import fill_passwords
from konverge_operators.database.mariadb.member.api_server import ApiServer
from konverge_operators.database.mariadb.member.archiver import Archiver, close_log
from konverge_operators.database.mariadb.member.loop import Loop
from konverge_operators.database.mariadb.member.server import Address, Server
from konverge_operators.database.mariadb.member.status_server import StatusServer


def main() -> int:
    """Run the member of this pod."""
    env = os.environ
    address = Address(
        name=env["POD_NAME"],
        cluster=env["CLUSTER"],
        ip=env["POD_IP"],
        root=Path(env["DATA"]),
        defaults=env["DEFAULTS"],
        provider=env["WSREP_PROVIDER"],
        tls=env.get("TLS", ""),
    )
    labels = dict(pair.split("=", 1) for pair in env["SELECTOR"].split(","))
    script = fill_passwords(Path(env["SCRIPT"]).read_text(), env)
    loop = Loop(address.name, ApiServer(address.cluster, labels), Server(address, env), script)
    signal.signal(signal.SIGTERM, lambda number, frame: loop.stop())  # noqa: ARG005
    server = StatusServer(address.ip, loop.state)
    with _archiving(address, loop, env):
        loop.run()
    server.close()
    return 0


@contextmanager
def _archiving(address: Address, loop: Loop, env: Mapping[str, str]) -> Generator[None]:
    """Archive the log meanwhile, if there is a destination."""
    if "ARCHIVE_URL" not in env:
        yield
        return
    password = env["SUPERUSER_PASSWORD"]
    archiver = Archiver(address.root, loop.is_primary, lambda: close_log(address.data, password), env)
    archiver.start()
    yield
    archiver.stop()


if __name__ == "__main__":
    sys.exit(main())
