"""A soak of the HTTP engine: requests and streams over TLS for a time, to a server that cuts, stalls and sends garbage.

`python bench/soak_transport.py --minutes 60`: ends by itself; prints requests, failures by kind, open descriptors and
memory at intervals, and fails when descriptors or memory grow, or a response is not the one that was asked for.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import ssl
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from konverge.client.access.config import ClientConfig
from konverge.client.access.tls import Tls
from konverge.client.connection.limits import Limits
from konverge.client.transport import HttpTransport
from konverge.errors import DecodeError, TransportError
from konverge.testing.certificates import Authority
from konverge.wire.messages import Request

WORKERS = 8
INTERVAL = 60.0
PAUSE = 0.1
"""A small load: the soak looks for leaks, not for speed."""


async def faulty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve requests whose target says what to answer: `/N/size/fault`."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            target = head.split(b" ", 2)[1].decode()
            number, size, fault = target.strip("/").split("/")
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
            await reader.readexactly(length)
            if not await answer(writer, number.encode(), int(size), fault):
                break
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        pass
    finally:
        writer.transport.abort()


async def answer(writer: asyncio.StreamWriter, number: bytes, size: int, fault: str) -> bool:
    """Answer a request; return True if the connection stays open."""
    body = (number + b" ") * (size // (len(number) + 1) + 1)
    if fault == "chunked":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for at in range(0, len(body), 1000):
            part = body[at : at + 1000]
            writer.write(b"%x\r\n%s\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body)
    if fault == "cut":
        writer.write(head + b"\r\n" + body[: len(body) // 2])
        await writer.drain()
        return False
    if fault == "garbage":
        writer.write(b"SSH-2.0-nonsense\r\n\r\n")
        return False
    if fault == "silent":
        await asyncio.sleep(0.3)
        return False
    if fault == "refused":
        return False
    writer.write(head + (b"Connection: close\r\n" if fault == "close" else b"") + b"\r\n" + body)
    await writer.drain()
    return fault != "close"


async def work(transport: HttpTransport, end: float, counts: Counter[str], seed: int) -> None:
    """Send requests until the end, and check each response."""
    choice = random.Random(seed)
    number = seed * 1_000_000
    while time.monotonic() < end:
        number += 1
        faults = ["", "", "", "chunked", "chunked", "close", "cut", "garbage", "silent", "refused"]
        fault, size = choice.choice(faults), choice.choice([10, 1_000, 50_000, 400_000])
        stream, leave = choice.random() < 0.2, choice.random() < 0.1
        request = Request(
            "GET", f"/{number}/{size}/{fault or 'none'}", timeout=0.2 if fault == "silent" else 20, stream=stream
        )
        try:
            async with await transport.send(request) as response:
                if leave:
                    counts["left"] += 1
                    continue
                parts = [part async for part in response.chunks()] if stream else [await response.read()]
            if set(b"".join(parts).split()) != {str(number).encode()}:
                raise SystemExit(f"a response of another request: {request.path}")
            counts["read"] += 1
        except (TransportError, DecodeError) as error:
            if fault not in ("cut", "garbage", "silent", "refused"):
                counts[f"unexpected: {str(error).rpartition(': ')[2][:60]}"] += 1
            counts[fault] += 1
        await asyncio.sleep(PAUSE)


def usage() -> tuple[int, int]:
    """Return open descriptors and resident memory in kB."""
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return len(os.listdir("/proc/self/fd")), pages * resource.getpagesize() // 1024


async def report(end: float, counts: Counter[str], seen: list[tuple[int, int]]) -> None:
    """Print counts and usage at intervals."""
    while time.monotonic() < end:
        await asyncio.sleep(min(INTERVAL, max(0.1, end - time.monotonic())))
        seen.append(usage())
        print(f"{time.strftime('%H:%M:%S')} descriptors={seen[-1][0]} rss={seen[-1][1]}kB {dict(counts)}", flush=True)


def certificates() -> tuple[ssl.SSLContext, Tls]:
    """Return what the server and the client need for TLS."""
    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(Path(directory), "soak")
        pair = authority.sign("server", file="server", hosts=["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        return context, Tls(ca=authority.ca.cert.read_bytes())


async def main(minutes: float) -> int:
    context, tls = certificates()
    server = await asyncio.start_server(faulty, "127.0.0.1", 0, ssl=context)
    config = ClientConfig(server=f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", tls=tls)
    counts: Counter[str] = Counter()
    seen: list[tuple[int, int]] = []
    end = time.monotonic() + minutes * 60
    async with server, HttpTransport(config, limits=Limits(connections=6, idle=5)) as transport:
        await asyncio.gather(
            report(end, counts, seen), *(work(transport, end, counts, seed + 1) for seed in range(WORKERS))
        )
        print(f"transport: {transport.stats()}")
    await asyncio.sleep(0.1)
    warm = seen[max(0, len(seen) // 5)]
    grown = seen[-1][1] - warm[1]
    unexpected = {name: count for name, count in counts.items() if name.startswith("unexpected")}
    print(f"memory since a fifth of the time: {grown:+} kB; descriptors: {usage()[0]}; unexpected: {unexpected}")
    return 1 if grown > 8_000 or unexpected else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    sys.exit(asyncio.run(main(parser.parse_args().minutes)))
