"""Frames of SPDY/3.1, the part of it that kubectl's port-forward uses: streams with headers, data, resets and pings.

There is no flow control, as in the implementation of Kubernetes: a peer that does not read stops the connection below.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from konverge.errors import DecodeError

__all__ = ["DICTIONARY", "Frame", "FrameReader", "FrameWriter", "NewStream", "Ping", "StreamData", "StreamReset"]

_VERSION: Final = 0x8003
_OPEN, _REPLY, _RESET, _PING = 1, 2, 3, 6
_LAST: Final = 0x01
_CANCEL: Final = 5
_HEADER_BYTES: Final = 8
_FRAME_LIMIT: Final = 1024 * 1024
_HEADERS_LIMIT: Final = 16 * 1024

_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow"
    " authorization cache-control connection content-base content-encoding content-language content-length"
    " content-location content-md5 content-range content-type date etag expect expires from host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma"
    " proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade"
    " user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie"
    " keep-alive origin"
)
_REST: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _text(value: str) -> bytes:
    return struct.pack(">I", len(value)) + value.encode()


DICTIONARY: Final = b"".join(_text(word.replace("_", " ")) for word in _WORDS.split()) + _REST.encode()
"""The dictionary of compressed headers, from the specification of SPDY/3."""


@dataclass(frozen=True)
class NewStream:
    """The client opened a stream. The names of headers are in lower case."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True)
class StreamData:
    """The client sent data on a stream; after the last one it sends no more."""

    stream: int
    content: bytes
    last: bool


@dataclass(frozen=True)
class StreamReset:
    """The client abandoned a stream."""

    stream: int


@dataclass(frozen=True)
class Ping:
    """The client wants an answer with the same number."""

    number: int


Frame: TypeAlias = NewStream | StreamData | StreamReset | Ping


class FrameReader:
    """Decodes the frames of a client. Frames that mean nothing to a server of port-forward are dropped."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._headers = zlib.decompressobj(zdict=DICTIONARY)

    def feed(self, content: bytes) -> Iterator[Frame]:
        """Add bytes, which need not end with a frame; yield the frames that are complete.

        Raises: DecodeError for bytes that are not SPDY/3.1, and for a frame that is too large.
        """
        self._pending += content
        while len(self._pending) >= _HEADER_BYTES:
            first, second, third = struct.unpack_from(">HHI", self._pending)
            end = _HEADER_BYTES + (third & 0xFFFFFF)
            if end > _FRAME_LIMIT or (first & 0x8000 and first != _VERSION):
                raise DecodeError("this is no frame of SPDY/3.1, or one that is too large")
            if len(self._pending) < end:
                return
            payload = bytes(self._pending[_HEADER_BYTES:end])
            del self._pending[:end]
            if not first & 0x8000:
                yield StreamData(first << 16 | second, payload, last=bool(third >> 24 & _LAST))
            elif (frame := self._control(second, payload)) is not None:
                yield frame

    def _control(self, kind: int, payload: bytes) -> Frame | None:
        try:
            if kind == _OPEN:
                return NewStream(_number(payload) & 0x7FFFFFFF, self._read_headers(payload[10:]))
            if kind == _RESET:
                return StreamReset(_number(payload) & 0x7FFFFFFF)
            return Ping(_number(payload)) if kind == _PING else None
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise DecodeError(f"a frame of SPDY/3.1 cannot be decoded: {error}") from error

    def _read_headers(self, compressed: bytes) -> dict[str, str]:
        block = self._headers.decompress(compressed, _HEADERS_LIMIT)
        if self._headers.unconsumed_tail:
            raise DecodeError("the headers of a stream are too large")
        texts, position = list[str](), 4
        for _ in range(2 * _number(block)):
            (length,) = struct.unpack_from(">I", block, position)
            texts.append(block[position + 4 : position + 4 + length].decode())
            position += 4 + length
        return dict(zip(texts[::2], texts[1::2], strict=True))


class FrameWriter:
    """Encodes the frames of a server."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def reply(self, stream: int) -> bytes:
        """Accept a stream, without headers."""
        block = self._headers.compress(struct.pack(">I", 0)) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control(_REPLY, struct.pack(">I", stream) + block)

    def data(self, stream: int, content: bytes, *, last: bool = False) -> bytes:
        """Send data on a stream."""
        return struct.pack(">II", stream, (_LAST << 24 if last else 0) | len(content)) + content

    def reset(self, stream: int) -> bytes:
        """Refuse a stream."""
        return _control(_RESET, struct.pack(">II", stream, _CANCEL))

    def answer_ping(self, ping: Ping) -> bytes:
        """Answer a ping."""
        return _control(_PING, struct.pack(">I", ping.number))


def _control(kind: int, payload: bytes) -> bytes:
    return struct.pack(">HHI", _VERSION, kind, len(payload)) + payload


def _number(payload: bytes) -> int:
    (found,) = struct.unpack_from(">I", payload)
    return int(found)
