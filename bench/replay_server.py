"""A server that lists pods of 4.5 kB and then sends changes at a constant rate.

Run it in its own process: `python replay_server.py --objects 2000 --rate 2000 --seconds 60`. It prints its port first.
It supports streaming lists only; the first watch with `sendInitialEvents` gets all changes. Every frame has an
annotation with the time at which it was sent. Pods differ as in a cluster, in addresses, node and container ids: a
hundred pods are on a node.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import sys
import time
from urllib.parse import parse_qs, urlsplit

from sample_pod import pod_bytes

__all__ = ["PODS_PER_NODE", "SENT"]

SENT = "bench.example.com/sent"

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
_BOOKMARK = (
    b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)
PODS_PER_NODE = 100
_INTERVAL = 0.01
"""Seconds between two batches of frames."""


class Replay:
    """The changes of a collection."""

    def __init__(self, objects: int, rate: int, seconds: float) -> None:
        self.objects, self.rate, self.seconds = objects, rate, seconds
        self._template = _template()
        self._version = 1000

    def frame(self, kind: bytes, number: int) -> bytes:
        """Return the next change, of the object with this number."""
        self._version += 1
        digest = hashlib.blake2b(b"%d" % number)
        first, second, third = digest.digest()[:3]
        ids = digest.hexdigest().encode()
        return self._template % {
            b"type": kind,
            b"name": b"pod-%d" % number,
            b"uid": b"%012d" % number,
            b"version": b"%d" % self._version,
            b"time": b"%.6f" % time.time(),
            b"node": b"%d" % (number // PODS_PER_NODE),
            b"ip": b"10.%d.%d.%d" % (first, second, third),
            b"id0": ids[:64],
            b"id1": ids[64:],
        }

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


def _template() -> bytes:
    """Return the frame of a pod with the names of the values that differ."""
    text = pod_bytes("%(name)b").replace(b'"48213"', b'"%(version)b"').replace(b"6f1de6c1d001", b"%(uid)b")
    text = text.replace(b'"annotations":{', b'"annotations":{"%b":"%%(time)b",' % SENT.encode())
    text = text.replace(b"node-17", b"node-%(node)b").replace(b"10.0.0.17", b"10.0.0.%(node)b")
    text = text.replace(b"10.1.4.23", b"%(ip)b")
    ids = iter((b"%(id0)b", b"%(id1)b"))
    text = re.sub(b"(?<=containerd://)[0-9a-f]{64}", lambda _: next(ids), text)
    return b'{"type":"%(type)b","object":' + text + b"}\n"


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
