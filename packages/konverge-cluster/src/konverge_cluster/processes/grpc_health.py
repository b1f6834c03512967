"""The health check of gRPC (`grpc.health.v1.Health/Check`), as the kubelet's gRPC probes call it.

One call over HTTP/2 without TLS. The headers of the answer are not decoded: a server that serves sends a message, and
one that refuses the call sends none.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Final

__all__ = ["SERVING", "check_health"]

SERVING: Final = "SERVING"
_STATUSES: Final = ("UNKNOWN", SERVING, "NOT_SERVING", "SERVICE_UNKNOWN")
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_STREAM: Final = 1
_LARGEST: Final = 16384  # of a frame, unless settings allow more

# Types and flags of frames
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY = 0, 1, 3, 4, 6, 7
_ACK, _END_STREAM, _END_HEADERS, _PADDED = 0x1, 0x1, 0x4, 0x8


async def check_health(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, service: str) -> str:
    """Ask for the status of a service, "" is the whole server; return its name, "" if the server has no answer.

    Raises: OSError when the connection breaks, or when it is not HTTP/2.
    """
    writer.write(_PREFACE + _frame(_SETTINGS) + _frame(_HEADERS, _END_HEADERS, _STREAM, _headers(host)))
    writer.write(_frame(_DATA, _END_STREAM, _STREAM, _message(_text_field(service))))
    await writer.drain()
    answer = b""
    while True:
        kind, flags, stream, payload = await _read_frame(reader)
        if kind in (_SETTINGS, _PING) and not flags & _ACK:
            writer.write(_frame(kind, _ACK, 0, payload if kind == _PING else b""))
        elif kind == _DATA and stream == _STREAM:
            answer += payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload
        ends = kind in (_DATA, _HEADERS) and flags & _END_STREAM and stream == _STREAM
        if ends or kind == _GO_AWAY or (kind == _RESET and stream == _STREAM):
            return _read_status(answer)


def _headers(host: str) -> bytes:
    """Return the headers of the call, none of them indexed or compressed."""
    named = {"content-type": "application/grpc", "te": "trailers", "user-agent": "kube-probe/1.36"}
    pseudo = b"\x83\x86\x04" + _literal("/grpc.health.v1.Health/Check") + b"\x01" + _literal(host)
    return pseudo + b"".join(b"\x00" + _literal(name) + _literal(value) for name, value in named.items())


def _literal(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()


def _text_field(text: str) -> bytes:
    """Return a message of Protocol Buffers with one text as its first field."""
    encoded = text.encode()
    length, rest = b"", len(encoded)
    while rest > 0x7F:
        length, rest = length + bytes((rest & 0x7F | 0x80,)), rest >> 7
    return b"\x0a" + length + bytes((rest,)) + encoded if encoded else b""


def _message(content: bytes) -> bytes:
    return struct.pack(">BI", 0, len(content)) + content


def _frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, int, int, bytes]:
    try:
        length, kind, flags, stream = struct.unpack(">IBBI", b"\x00" + await reader.readexactly(9))
        if length > _LARGEST:
            raise OSError("the server does not answer in HTTP/2")
        return kind, flags, stream & 0x7FFFFFFF, await reader.readexactly(length)
    except asyncio.IncompleteReadError:
        raise ConnectionResetError("the server closed the connection") from None


def _read_status(answer: bytes) -> str:
    """Return the status in an answer; a server leaves out the default, UNKNOWN."""
    if len(answer) < 5:
        return ""
    content = answer[5:]
    number = content[1] if len(content) > 1 and content[0] == 0x08 else 0
    return _STATUSES[number] if number < len(_STATUSES) else ""
