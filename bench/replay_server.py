"""A server that lists pods of 4.5 kB and then sends changes at a constant rate.

Run it in its own process: `python replay_server.py --objects 2000 --rate 2000 --seconds 60`. It prints its port first.
It supports streaming lists only; the first watch with `sendInitialEvents` gets all changes. Every frame has an
annotation with the time at which it was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from sample_pod import pod_bytes

__all__ = ["SENT"]

SENT = "bench.example.com/sent"

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
_BOOKMARK = (
    b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)
_INTERVAL = 0.01
"""Seconds between two batches of frames."""


class Replay:
    """The changes of a collection."""

    def __init__(self, objects: int, rate: int, seconds: float) -> None:
        self.objects, self.rate, self.seconds = objects, rate, seconds
        template = pod_bytes("NAME").replace(b'"48213"', b'"VERSION"')
        template = template.replace(b'"annotations":{', b'"annotations":{"%b":"TIME",' % SENT.encode())
        template = template.replace(b"6f1de6c1d001", b"UID")
        before, after = template.split(b"NAME", 1)
        self._pieces = [before, *_split(after, b"UID", b"VERSION", b"TIME")]
        self._version = 1000

    def frame(self, kind: bytes, number: int) -> bytes:
        """Return the next change, of the object with this number."""
        self._version += 1
        a, b, c, d, e = self._pieces
        values = (b"pod-%d" % number, b"%012d" % number, b"%d" % self._version, b"%.6f" % time.time())
        return b'{"type":"%b","object":%b}\n' % (
            kind,
            b"".join((a, values[0], b, values[1], c, values[2], d, values[3], e)),
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond to one request, the only one of its connection."""
        line = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        query = parse_qs(urlsplit(line).query)
        writer.write(_HEAD)
        if "sendInitialEvents" in query:
            await self._replay(writer)
        await asyncio.sleep(3600)

    async def _replay(self, writer: asyncio.StreamWriter) -> None:
        for number in range(self.objects):
            await _send(writer, self.frame(b"ADDED", number))
        await _send(writer, _BOOKMARK % self._version)
        await asyncio.sleep(1)
        start, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - start) < self.seconds:
            due = int(elapsed * self.rate) - sent
            await _send(writer, b"".join(self.frame(b"MODIFIED", (sent + one) % self.objects) for one in range(due)))
            sent += due
            await asyncio.sleep(_INTERVAL)
        sys.stdout.write(f"{sent} {self._version}\n")
        sys.stdout.flush()


def _split(text: bytes, *separators: bytes) -> Iterator[bytes]:
    for separator in separators:
        before, text = text.split(separator, 1)
        yield before
    yield text


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await writer.drain()


async def main(replay: Replay) -> None:
    server = await asyncio.start_server(replay.serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    args = parser.parse_args()
    asyncio.run(main(Replay(args.objects, args.rate, args.seconds)))
