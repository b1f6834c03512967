"""The HTTP engine compared with aiohttp: CPU of a GET over TLS from a server that answers at once.

Run by `make bench-transport`. Each contender runs in its own process, in shuffled rounds. The server is a process too;
its answer is that of a real API server for a ConfigMap of 0.9 kB. `protocol` is the least that asyncio needs: an
asyncio Protocol that writes a fixed request and searches the length of the response.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from measurement import Measurement, Result, measure_rounds

GETS = 3_000
WARM_UP = 200
PATH = "/api/v1/namespaces/default/configmaps/item-0"
BODY = b'{"kind":"ConfigMap","apiVersion":"v1","data":{"config":"%s"}}' % (b"x" * 850)
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nAudit-Id: 5f1d1fb2-6c4b-4f0a-9c3e-2f8f3f1f6f10\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 6e0a8c1e-93d3-4d1c-a2b7-0b8f31b5a6ad\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 8f3a2a55-1c57-4f62-8f7f-5d9e5f4f9b9e\r\n"
    b"Date: Mon, 16 Nov 2026 03:00:00 GMT\r\nContent-Length: %d\r\n\r\n" % len(BODY)
) + BODY

Get = Callable[[], Awaitable[int]]


class Server(asyncio.Protocol):
    """Answers each request that fits into one read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(RESPONSE * data.count(b"\r\n\r\n"))


async def serve(certificate: str, key: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


class _Minimal(asyncio.Protocol):
    _LENGTH = re.compile(rb"Content-Length: (\d+)")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = self.received.find(b"\r\n\r\n")
        match = self._LENGTH.search(self.received)
        if match and len(self.received) == end + 4 + int(match[1]):
            self.done.set_result(int(match[1]))


async def protocol(port: int, ca: str, gets: int) -> float:
    context = ssl.create_default_context(cafile=ca)
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(_Minimal, "127.0.0.1", port, ssl=context)
    request = f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n".encode()

    async def get() -> int:
        connection.received = b""
        connection.done = loop.create_future()
        connection.transport.write(request)
        return await connection.done

    used = await cpu_of(get, gets)
    connection.transport.abort()
    return used


async def aiohttp(port: int, ca: str, gets: int) -> float:
    import aiohttp as library

    context = ssl.create_default_context(cafile=ca)
    async with library.ClientSession(connector=library.TCPConnector(ssl=context)) as session:

        async def get() -> int:
            async with session.get(f"https://127.0.0.1:{port}{PATH}") as response:
                return len(await response.read())

        return await cpu_of(get, gets)


async def konverge(port: int, ca: str, gets: int, *, engine: str = "http1") -> float:
    from konverge.client.access.config import ClientConfig
    from konverge.client.access.tls import Tls
    from konverge.client.aiohttp_transport import AiohttpTransport
    from konverge.client.transport import HttpTransport
    from konverge.wire.messages import Request

    tls = Tls(ca=await asyncio.to_thread(Path(ca).read_bytes))
    config = ClientConfig(server=f"https://127.0.0.1:{port}", tls=tls)
    request = Request("GET", PATH, headers={"accept": "application/json"}, timeout=30)
    async with (HttpTransport if engine == "http1" else AiohttpTransport)(config) as transport:

        async def get() -> int:
            async with await transport.send(request) as response:
                return len(await response.read())

        return await cpu_of(get, gets)


async def cpu_of(get: Get, gets: int) -> float:
    """Return the CPU microseconds of one GET."""
    for _ in range(WARM_UP):
        assert await get() == len(BODY)
    begin = time.process_time()
    for _ in range(gets):
        await get()
    return (time.process_time() - begin) / gets * 1e6


CONTENDERS: dict[str, Callable[[int, str, int], Awaitable[float]]] = {
    "protocol": protocol,
    "aiohttp": aiohttp,
    "konverge": konverge,
    "konverge on aiohttp": partial(konverge, engine="aiohttp"),
}


@contextmanager
def server() -> Iterator[tuple[int, str]]:
    from konverge.testing.certificates import Authority

    with tempfile.TemporaryDirectory() as directory:
        authority = Authority(Path(directory), "bench")
        pair = authority.sign("server", file="server", hosts=["127.0.0.1"])
        command = [sys.executable, __file__, "--serve", str(pair.cert), str(pair.key)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield int(process.stdout.readline()), str(authority.ca.cert)
            finally:
                process.kill()


def one_process(name: str, port: int, ca: str, gets: int) -> float:
    command = [sys.executable, __file__, "--contender", name, "--port", str(port), "--ca", ca, "--gets", str(gets)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return float(json.loads(done.stdout))


def main(rounds: int, gets: int) -> None:
    with server() as (port, ca):
        contenders = {name: partial(one_process, name, port, ca, gets) for name in CONTENDERS}
        report(measure_rounds(contenders, rounds), rounds, gets)


def report(measured: dict[str, Measurement], rounds: int, gets: int) -> None:
    result = Result(
        "transport", f"CPU time of the client process, median of {rounds} shuffled rounds of {gets:,} GETs over TLS."
    )
    result.compare("GET", "us per GET", measured, against="aiohttp")
    ratio = measured["konverge"].median / measured["aiohttp"].median
    result.target(f"a GET costs at most 0.55x aiohttp's CPU ({ratio:.2f}x)", ratio <= 0.55)
    result.save()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--gets", type=int, default=GETS)
    parser.add_argument("--contender", choices=CONTENDERS)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ca", default="")
    parser.add_argument("--serve", nargs=2, metavar=("CERTIFICATE", "KEY"))
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(*args.serve))
    elif args.contender:
        print(json.dumps(asyncio.run(CONTENDERS[args.contender](args.port, args.ca, args.gets))))  # type: ignore[arg-type]
    else:
        main(args.rounds, args.gets)
