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
   and prefers the coding to a length).
8. A connection can be used again after a response whose end is known without the end of the connection, from a server
   of HTTP/1.1 that does not close it, if no byte follows the response (h11: keeps bytes that follow).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

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
_CONTENT_LENGTH = re.compile(r"[0-9]{1,18}")
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
    """

    __slots__ = (
        "_interim",
        "_left",
        "_method",
        "_parts",
        "_pending",
        "_step",
        "complete",
        "headers",
        "keep_alive",
        "status",
        "warnings",
    )

    def __init__(self, method: str) -> None:
        self._method = method
        self._pending = b""
        self._parts: list[bytes] = []
        self._step = self._parse_head
        self._left = 0
        self._interim = 0
        self.status = 0
        """The status; 0 until the header fields are complete."""
        self.headers: dict[str, str] = {}
        """The header fields, with names in lower case; the values of one that is repeated are joined."""
        self.warnings: list[str] = []
        """The values of all `Warning` fields, in order."""
        self.complete = False
        self.keep_alive = False
        """True if the connection can be used again once the response is complete."""

    def feed(self, data: bytes) -> list[bytes]:
        """Parse bytes and return the parts of the body that they contain.

        Raises: HttpError.
        """
        if self._pending:
            data = self._pending + data
            self._pending = b""
        parts: list[bytes] = []
        self._parts = parts
        position, end = 0, len(data)
        while position < end and not self.complete:
            following = self._step(data, position)
            if following == _MORE:
                self._pending = data[position:]
                return parts
            position = following
        if position < end:
            self.keep_alive = False
        return parts

    def feed_eof(self) -> bool:
        """Parse the end of the connection; return True if the response is complete, False if it was cut."""
        if self._step == self._parse_until_end:
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
        headers, self.warnings = _parse_fields(data[line.end() : end + 2])
        http10 = line[1] == b"0"
        length, chunked = _framing(headers, http10=http10)
        if status < 200:
            self._skip_interim(status)
            return end + 4
        self.headers = headers
        self.status = status
        self._begin_body(length, chunked=chunked)
        if http10 or _closes(headers):
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
            self._step = self._parse_chunk_size
        elif length is not None:
            self._left = length
            self._step = self._parse_sized
        else:
            self.keep_alive = False
            self._step = self._parse_until_end

    def _parse_sized(self, data: bytes, position: int) -> int:
        taken = min(self._left, len(data) - position)
        self._parts.append(data if taken == len(data) else data[position : position + taken])
        self._left -= taken
        self.complete = self._left == 0
        return position + taken

    def _parse_until_end(self, data: bytes, position: int) -> int:
        self._parts.append(data[position:])
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
        self._step = self._parse_chunk if self._left else self._parse_trailers
        return end + 2

    def _parse_chunk(self, data: bytes, position: int) -> int:
        taken = min(self._left, len(data) - position)
        self._parts.append(data[position : position + taken])
        self._left -= taken
        if not self._left:
            self._step = self._parse_chunk_end
        return position + taken

    def _parse_chunk_end(self, data: bytes, position: int) -> int:
        if not b"\r\n".startswith(data[position : position + 2]):
            raise HttpError("a chunk does not end where its size says")
        if len(data) - position < 2:
            return _MORE
        self._step = self._parse_chunk_size
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
        _parse_fields(data[position : end + 2])
        self.complete = True
        return end + 4


def _check_incomplete_head(data: bytes, position: int) -> None:
    start = data[position : position + len(_START)]
    if not _START.startswith(start):
        raise HttpError("it does not start with a status line")
    if len(data) - position >= _HEAD_BYTES:
        raise HttpError("its header is too long")


def _parse_fields(block: bytes) -> tuple[dict[str, str], list[str]]:
    """Return the header fields of a block in which each line ends with CR LF, and the values of `Warning`."""
    if _FIELDS.fullmatch(block) is None:
        raise HttpError("a header field is not valid")
    headers: dict[str, str] = {}
    warnings: list[str] = []
    for line in block.decode(errors="replace").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name = name.lower()
        value = value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
        if name == "warning":
            warnings.append(value)
    return headers, warnings


def _framing(headers: dict[str, str], *, http10: bool) -> tuple[int | None, bool]:
    """Return the length of the body, None if it is not given, and whether it comes in chunks."""
    length = headers.get("content-length")
    coding = headers.get("transfer-encoding")
    if length is not None and not _CONTENT_LENGTH.fullmatch(length):
        raise HttpError("its length is not valid, or given twice")
    if coding is None:
        return None if length is None else int(length), False
    if coding.lower() != "chunked" or length is not None or http10:
        raise HttpError("its transfer coding is not valid, or its length is given twice")
    return None, True


def _closes(headers: dict[str, str]) -> bool:
    options = headers.get("connection")
    return options is not None and "close" in (option.strip().lower() for option in options.split(","))
