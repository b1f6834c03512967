"""The tables of sockets in /proc."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from konverge_cluster.processes.socket_tables import Socket, pod_sockets, read_sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is a file system of Linux")

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0200407F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 65534        0 11 1 0 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0 0 10 0
   2: 0100007F:8001 0180407F:0050 01 00000000:00000000 00:00000000 00000000     0        0 13 1 0 20 4 30 10 -1
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 14 1 0 100 0 0 10 0
   1: 0000000000000000FFFF00000200407F:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 15 1 0 100 0 0 10 0
"""


@pytest.mark.skipif(sys.byteorder != "little", reason="the table was recorded on a little-endian machine")
def test_addresses_of_both_families_are_read(tmp_path: Path) -> None:
    paths = [tmp_path / "tcp", tmp_path / "tcp6"]
    for path, text in zip(paths, (TABLE, TABLE6), strict=True):
        path.write_text(text)

    rows = list(read_sockets([*map(str, paths), str(tmp_path / "missing")]))

    assert rows[0] == Socket(11, ("127.64.0.2", 8080), ("0.0.0.0", 0), listens=True)
    assert rows[2] == Socket(13, ("127.0.0.1", 0x8001), ("127.64.128.1", 80), listens=False)
    assert rows[4].local == ("127.64.0.2", 8080)
    assert [row.inode for row in rows if row.is_wildcard] == [12, 14]
    assert [row.inode for row in read_sockets(map(str, paths), listening=True)] == [11, 12, 14, 15]


def test_the_sockets_of_a_process_are_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as own:
        inode = os.fstat(own.fileno()).st_ino
        found = {row.inode: row for row in read_sockets(listening=True)}

        assert inode in pod_sockets([os.getpid()])
        assert found[inode].local == own.getsockname()
        assert not found[inode].is_wildcard
