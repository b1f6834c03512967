"""The parser of responses against h11: what ours accepts, h11 accepts too and understands in the same way.

Responses are built from valid and invalid pieces, then bytes are changed, and split at random. KONVERGE_FUZZ_RESPONSES
sets their number.
"""

from __future__ import annotations

import os
from random import Random

import h11

from konverge.wire.http1 import HttpError, ResponseParser

RESPONSES = int(os.environ.get("KONVERGE_FUZZ_RESPONSES", "6000"))

Outcome = tuple[int, list[tuple[str, str]], bytes]
"""Status, header fields and body of a complete response. h11 changes the value of `Transfer-Encoding`: left out."""

VERSIONS = [b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/1.", b"http/1.1"]
STATUSES = [
    b"200",
    b"200",
    b"200",
    b"404",
    b"204",
    b"304",
    b"100",
    b"101",
    b"103",
    b"099",
    b"599",
    b"600",
    b"20",
    b"2000",
]
REASONS = [b" OK", b" ", b"", b" Not Found", b" caf\xc3\xa9", b" a\tb", b" \x00", b" a\rb"]
ENDS = [b"\r\n"] * 30 + [b"\n", b"\r", b"\r\r\n", b"\r\n ", b"\x00\r\n"]
FIELDS = [
    b"Content-Length: 5",
    b"Content-Length: 5",
    b"content-length:0",
    b"Content-Length: 005",
    b"Content-Length: 5, 5",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999999",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked",
    b"transfer-encoding: Chunked",
    b"Transfer-Encoding: gzip",
    b"Transfer-Encoding : chunked",
    b"Connection: close",
    b"X-Name:  value \t",
    b"X-Name: \x80\xff",
    b"X-Name: a\x0bb",
    b"X-Empty:",
    b"X(Name: value",
    b"No colon",
    b": value",
    b" folded",
    b"Date: Mon, 16 Nov 2026 03:00:00 GMT",
]
CHUNKS = [
    b"5\r\nhello\r\n",
    b"5;a=b\r\nhello\r\n",
    b"5 ;a\r\nhello\r\n",
    b"05\r\nhello\r\n",
    b"5\r\nhello",
    b"6\r\nhello\r\n",
    b"g\r\n",
]
ENDINGS = [
    b"0\r\n\r\n",
    b"0\r\n\r\n",
    b"0\r\nX: y\r\n\r\n",
    b"00\r\n\r\n",
    b"0;x\r\n\r\n",
    b"0\r\n",
    b"0\r\nbad\r\n\r\n",
    b"0\r\nTransfer-Encoding: gzip\r\n\r\n",
    b"0\r\nContent-Length: x\r\n\r\n",
    b"0\n\n",
]


def build(random: Random) -> bytes:
    """Return a response, valid or nearly so."""
    data = b""
    for _ in range(random.choice([1, 1, 1, 2])):
        data += random.choice(VERSIONS) + b" " + random.choice(STATUSES) + random.choice(REASONS) + random.choice(ENDS)
        for _ in range(random.randrange(4)):
            data += random.choice(FIELDS) + random.choice(ENDS)
        data += b"\r\n"
    if random.random() < 0.5:
        data += b"hello"[: random.choice([5, 5, 5, 3, 0])]
    else:
        data += b"".join(random.choice(CHUNKS) for _ in range(random.randrange(3))) + random.choice(ENDINGS)
    if random.random() < 0.3:
        at = random.randrange(len(data))
        data = data[:at] + bytes([random.randrange(256)]) + data[at + random.randrange(2) :]
    return data


def split(data: bytes, random: Random) -> list[bytes]:
    """Return the bytes in random parts."""
    cuts = sorted(random.sample(range(1, len(data)), min(len(data) - 1, random.randrange(4))))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def ours(parts: list[bytes], method: str) -> Outcome | None:
    """Return what our parser reads before the connection ends, None if it refuses or the response is cut."""
    parser, body = ResponseParser(method), b""
    try:
        for part in parts:
            body += b"".join(parser.feed(part))
    except HttpError:
        return None
    if not parser.feed_eof():
        return None
    return parser.status, _compared(parser.headers), body


def theirs(parts: list[bytes], method: str) -> Outcome | None:
    """Return what h11 reads."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    status, headers, body = 0, dict[str, str](), b""
    try:
        for part in [*parts, b""]:
            connection.receive_data(part)
            while not isinstance(event := connection.next_event(), type(h11.NEED_DATA)):
                if isinstance(event, h11.Response):
                    status = event.status_code
                    for name, value in event.headers:
                        text = value.decode(errors="replace")
                        key = name.decode()
                        headers[key] = f"{headers[key]}, {text}" if key in headers else text
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    return status, _compared(headers), body
                elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                    break
    except h11.RemoteProtocolError:
        return None
    return None


def _compared(headers: dict[str, str]) -> list[tuple[str, str]]:
    return sorted((name, value) for name, value in headers.items() if name != "transfer-encoding")


def test_ours_accepts_nothing_that_h11_rejects_and_reads_the_same() -> None:
    accepted = 0
    for seed in range(RESPONSES):
        random = Random(seed)
        data, method = build(random), random.choice(["GET", "GET", "HEAD", "POST"])
        parts = split(data, random)
        read = ours(parts, method)
        if read is not None:
            assert theirs(parts, method) == read, (seed, method, parts)
            accepted += 1
    assert accepted > RESPONSES / 20, "hardly any response is valid: the comparison is worth little"


def test_where_ours_is_stricter() -> None:
    stricter = {
        "a bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "obs-fold": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        "a control character": b"HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n",
        "a doubled length": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        "a length and a coding": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "a status above 599": b"HTTP/1.1 700 OK\r\nContent-Length: 0\r\n\r\n",
        "another version": b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "a coding in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    }
    found = {
        name for name, data in stricter.items() if ours([data], "GET") is None and theirs([data], "GET") is not None
    }
    assert found == set(stricter)
