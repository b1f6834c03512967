"""HTTP/1.1 of a client, without I/O: the bytes of a request, and a parser of responses.

Rules of the parser (RFC 9112). Where h11 accepts more, the rule says what; it accepts nothing that h11 rejects.

1. A line ends with CR LF (h11: also with LF).
2. A response starts with HTTP/1.0 or HTTP/1.1, a space and a status of 100 to 599; a space and the reason may follow
   (h11: any version, any status of three digits from 100).
3. A header field is a token, a colon, and a value without control characters except tabs. A value that continues on
   the next line is an error (h11: joins the lines, accepts most control characters).
4. Status line and header fields have at most 64 KiB, trailers too, and a line with the size of a chunk 256 bytes.
5. Interim responses (1xx) are skipped, at most 16. A 101 is an error, since no upgrade is requested.
6. A response to HEAD, a 2xx to CONNECT, a 204 and a 304 have no body, whatever their fields contain.
7. `Transfer-Encoding: chunked`, or one `Content-Length` of at most 18 digits, or the end of the connection limits a
   body. Both fields, one of them twice, another coding, or a coding in HTTP/1.0 are errors (h11: accepts equal lengths,
   and prefers the coding to a length). So is either of them in a trailer (h11: only if it is not valid).
8. A connection can be used again after a response whose end is known without the end of the connection, from a server
   of HTTP/1.1 that does not close it, if no byte follows the response (h11: keeps bytes that follow).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

__all__ = ["HttpError", "ResponseParser", "encode_fields", "encode_request"]

_HEAD_BYTES = 64 << 10
_CHUNK_LINE_BYTES = 256
_INTERIM_RESPONSES = 16
_MORE = -1
"""A step returns this position when it needs more bytes."""

_START = b"HTTP/1."
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [\t\x20-\x7e\x80-\xff]*)?\r\n")
_FIELDS = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?")
_LENGTH = b"\r\ncontent-length:"
_LENGTH_DIGITS = 18
_CODING, _CONNECTION, _ENCODING, _WARNING = (
    b"\r\ntransfer-encoding:",
    b"\r\nconnection:",
    b"\r\ncontent-encoding:",
    b"\r\nwarning:",
)
"""How a line of such a field begins, in a block in lower case with an empty line before it."""
_UNSAFE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class HttpError(Exception):
    """The bytes are not a response of HTTP/1.1; the text names the rule and contains nothing that was received."""


def encode_fields(fields: Iterable[tuple[str, str]]) -> str:
    """Return header fields as lines.

    Raises: ValueError for a control character, which would end a line early.
    """
    lines = []
    for name, value in fields:
        if _UNSAFE.search(name) or _UNSAFE.search(value):
            raise ValueError(f"a header field contains a control character: {name!r}")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines)


def encode_request(method: str, target: str, fields: str) -> bytes:
    """Return the first line and the header fields of a request, up to the empty line; `encode_fields` made these."""
    if _UNSAFE.search(target) or " " in target:
        raise ValueError("the target of a request contains a space or a control character")
    return f"{method} {target} HTTP/1.1\r\n{fields}\r\n".encode()


class ResponseParser:
    """Parses the response to one request.

    Promises: the result does not depend on how the bytes are split; memory is bounded by the limits above and by what
    one `feed` gets; after an HttpError the parser is not used again.

    All header fields are checked, but `headers` is made when it is read first: most responses are used without it. No
    attribute refers to the parser itself, or each response would have to wait for the garbage collector.
    """

    __slots__ = (
        "_fields",
        "_headers",
        "_interim",
        "_left",
        "_lowered",
        "_method",
        "_pending",
        "_step",
        "complete",
        "keep_alive",
        "parts",
        "status",
    )

    def __init__(self, method: str) -> None:
        self._method = method
        self._pending = b""
        self._step: _Step = ResponseParser._parse_head
        self._left = 0
        self._interim = 0
        self._fields = self._lowered = b""
        self._headers: dict[str, str] | None = None
        self.parts: list[bytes] = []
        """The parts of the body in the bytes of the last `feed`, also when it raised."""
        self.status = 0
        """The status; 0 until the header fields are complete."""
        self.complete = False
        self.keep_alive = False
        """True if the connection can be used again once the response is complete."""

    @property
    def headers(self) -> dict[str, str]:
        """The header fields, with names in lower case; the values of one that is repeated are joined."""
        if self._headers is None:
            self._headers = {}
            for name, value in _split_fields(self._fields):
                known = self._headers.get(name)
                self._headers[name] = value if known is None else f"{known}, {value}"
        return self._headers

    @property
    def warnings(self) -> list[str]:
        """The values of all `Warning` fields, in order."""
        if _WARNING not in self._lowered:
            return []
        return [value for name, value in _split_fields(self._fields) if name == "warning"]

    @property
    def encoding(self) -> str:
        """The value of `Content-Encoding`, "" without one."""
        return self.headers["content-encoding"] if _ENCODING in self._lowered else ""

    def feed(self, data: bytes) -> list[bytes]:
        """Parse bytes and return the parts of the body that they contain.

        Raises: HttpError.
        """
        if self._pending:
            data = self._pending + data
            self._pending = b""
        parts: list[bytes] = []
        self.parts = parts
        position, end = 0, len(data)
        while position < end and not self.complete:
            following = self._step(self, data, position)
            if following == _MORE:
                self._pending = data[position:]
                return parts
            position = following
        if position < end:
            self.keep_alive = False
        return parts

    def feed_eof(self) -> bool:
        """Parse the end of the connection; return True if the response is complete, False if it was cut."""
        if self._step is ResponseParser._parse_until_end:
            self.complete = True
        return self.complete

    def _parse_head(self, data: bytes, position: int) -> int:
        end = data.find(b"\r\n\r\n", position, position + _HEAD_BYTES)
        if end < 0:
            _check_incomplete_head(data, position)
            return _MORE
        line = _STATUS_LINE.match(data, position, end + 2)
        if line is None:
            raise HttpError("the status line is not valid")
        status = int(line[2])
        fields = data[line.end() : end + 2]
        _check_fields(fields)
        lowered = b"\r\n" + fields.lower()
        http10 = line[1] == b"0"
        length, chunked = _framing(lowered, http10=http10)
        if status < 200:
            self._skip_interim(status)
            return end + 4
        self._fields, self._lowered = fields, lowered
        self.status = status
        self._begin_body(length, chunked=chunked)
        if http10 or (_CONNECTION in lowered and _closes(self.headers["connection"])):
            self.keep_alive = False
        return end + 4

    def _skip_interim(self, status: int) -> None:
        self._interim += 1
        if status == 101:
            raise HttpError("it switches protocols, which was not requested")
        if self._interim > _INTERIM_RESPONSES:
            raise HttpError("too many interim responses")

    def _begin_body(self, length: int | None, *, chunked: bool) -> None:
        self.keep_alive = True
        tunnel = self._method == "CONNECT" and self.status < 300
        if self._method == "HEAD" or tunnel or self.status in (204, 304) or length == 0:
            self.complete = True
        elif chunked:
            self._step = ResponseParser._parse_chunk_size
        elif length is not None:
            self._left = length
            self._step = ResponseParser._parse_sized
        else:
            self.keep_alive = False
            self._step = ResponseParser._parse_until_end

    def _parse_sized(self, data: bytes, position: int) -> int:
        taken = min(self._left, len(data) - position)
        self.parts.append(data if taken == len(data) else data[position : position + taken])
        self._left -= taken
        self.complete = self._left == 0
        return position + taken

    def _parse_until_end(self, data: bytes, position: int) -> int:
        self.parts.append(data[position:])
        return len(data)

    def _parse_chunk_size(self, data: bytes, position: int) -> int:
        end = data.find(b"\r\n", position, position + _CHUNK_LINE_BYTES)
        if end < 0:
            if len(data) - position >= _CHUNK_LINE_BYTES:
                raise HttpError("the size of a chunk is too long")
            return _MORE
        size = _CHUNK_SIZE.fullmatch(data, position, end)
        if size is None:
            raise HttpError("the size of a chunk is not valid")
        self._left = int(size[1], 16)
        self._step = ResponseParser._parse_chunk if self._left else ResponseParser._parse_trailers
        return end + 2

    def _parse_chunk(self, data: bytes, position: int) -> int:
        taken = min(self._left, len(data) - position)
        self.parts.append(data[position : position + taken])
        self._left -= taken
        if not self._left:
            self._step = ResponseParser._parse_chunk_end
        return position + taken

    def _parse_chunk_end(self, data: bytes, position: int) -> int:
        if not b"\r\n".startswith(data[position : position + 2]):
            raise HttpError("a chunk does not end where its size says")
        if len(data) - position < 2:
            return _MORE
        self._step = ResponseParser._parse_chunk_size
        return position + 2

    def _parse_trailers(self, data: bytes, position: int) -> int:
        if data.startswith(b"\r\n", position):
            self.complete = True
            return position + 2
        end = data.find(b"\r\n\r\n", position, position + _HEAD_BYTES)
        if end < 0:
            if len(data) - position >= _HEAD_BYTES:
                raise HttpError("the trailers are too long")
            return _MORE
        _check_trailers(data[position : end + 2])
        self.complete = True
        return end + 4


def _check_incomplete_head(data: bytes, position: int) -> None:
    start = data[position : position + len(_START)]
    if not _START.startswith(start):
        raise HttpError("it does not start with a status line")
    if len(data) - position >= _HEAD_BYTES:
        raise HttpError("its header is too long")


def _check_fields(block: bytes) -> None:
    """Check header fields, each of which ends with CR LF."""
    if _FIELDS.fullmatch(block) is None:
        raise HttpError("a header field is not valid")


def _check_trailers(block: bytes) -> None:
    _check_fields(block)
    lowered = b"\r\n" + block.lower()
    if _LENGTH in lowered or _CODING in lowered:
        raise HttpError("its trailers contain a length or a coding")


def _split_fields(block: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names in lower case and the values of header fields."""
    for line in block.decode(errors="replace").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        yield name.lower(), value.strip(" \t")


def _framing(lowered: bytes, *, http10: bool) -> tuple[int | None, bool]:
    """Return the length of the body, None if it is not given, and whether it comes in chunks."""
    length = _value(lowered, _LENGTH)
    if length is not None and not (length.isdigit() and len(length) <= _LENGTH_DIGITS):
        raise HttpError("its length is not valid, or given twice")
    coding = _value(lowered, _CODING)
    if coding is None:
        return None if length is None else int(length), False
    if coding != b"chunked" or length is not None or http10:
        raise HttpError("its transfer coding is not valid, or its length is given twice")
    return None, True


def _value(lowered: bytes, start: bytes) -> bytes | None:
    """Return the value of a field, None without it; of one that is repeated nothing that is valid."""
    before = lowered.find(start)
    if before < 0:
        return None
    begin = before + len(start)
    return b"" if lowered.find(start, begin) >= 0 else lowered[begin : lowered.index(b"\r\n", begin)].strip(b" \t")


def _closes(options: str) -> bool:
    return "close" in (option.strip().lower() for option in options.split(","))


_Step: TypeAlias = Callable[[ResponseParser, bytes, int], int]
