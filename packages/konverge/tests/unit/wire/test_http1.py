"""HTTP/1.1 without I/O: each rule of the parser, however the bytes are split, and requests that cannot be split."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire.http1 import HttpError, ResponseParser, encode_fields, encode_request

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def parse(data: bytes, method: str = "GET", *, size: int | None = None) -> tuple[ResponseParser, bytes]:
    """Feed the bytes in parts of a size, or at once, and return the parser with the body."""
    parser = ResponseParser(method)
    size = size or len(data) or 1
    body = b"".join(part for at in range(0, len(data), size) for part in parser.feed(data[at : at + size]))
    return parser, body


@pytest.mark.parametrize("size", [1, 2, 3, 7, None])
@pytest.mark.parametrize(
    ("data", "body"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", b"hello"),
        (OK + b"content-length:0\r\n\r\n", b""),
        (CHUNKED + b"3\r\nabc\r\n02\r\nde\r\n0\r\n\r\n", b"abcde"),
        (CHUNKED + b"A;name=value\r\n0123456789\r\n0\r\nX-Trailer: yes\r\n\r\n", b"0123456789"),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok",
            b"ok",
        ),
        (b"HTTP/1.1 204\r\nContent-Length: 7\r\n\r\n", b""),
    ],
)
def test_a_response_does_not_depend_on_how_it_arrives(data: bytes, body: bytes, size: int | None) -> None:
    parser, received = parse(data, size=size)
    assert received == body
    assert parser.complete
    assert parser.keep_alive


def test_header_fields_have_lower_case_names_and_repeated_ones_are_joined() -> None:
    parser, _ = parse(
        OK + b"X-A:  1 \r\nx-a: 2\r\nWarning: 299 - a\r\nEmpty:\r\nWARNING: 299 - b\r\nContent-Length: 0\r\n\r\n"
    )
    assert parser.headers == {
        "x-a": "1, 2",
        "warning": "299 - a, 299 - b",
        "empty": "",
        "content-length": "0",
    }
    assert parser.warnings == ["299 - a", "299 - b"]


def test_the_encoding_and_the_warnings_are_found_whatever_the_case_of_their_names() -> None:
    parser, _ = parse(OK + b"Not-Warning: 1\r\ncontent-ENCODING:\tgzip \r\nContent-Length: 0\r\n\r\n")
    assert (parser.encoding, parser.warnings) == ("gzip", [])
    parser, _ = parse(OK + b"X: content-encoding: gzip\r\nContent-Length: 0\r\n\r\n")
    assert parser.encoding == ""


def test_a_parser_is_freed_without_the_garbage_collector() -> None:
    parser, _ = parse(CHUNKED + b"1\r\nx\r\n0\r\n\r\n")
    assert parser.headers
    assert not any(one is parser for one in gc.get_referents(*gc.get_referents(parser)))


def test_a_response_without_a_length_ends_with_the_connection() -> None:
    parser, body = parse(OK + b"\r\nall of it")
    assert (body, parser.complete, parser.keep_alive) == (b"all of it", False, False)
    assert parser.feed_eof()
    assert parser.complete


@pytest.mark.parametrize("data", [b"", b"HTTP/1", OK + b"Content-Length: 9\r\n\r\nhal", CHUNKED + b"3\r\nabc\r\n"])
def test_a_response_that_is_cut_is_not_complete(data: bytes) -> None:
    assert not parse(data)[0].feed_eof()


@pytest.mark.parametrize("method", ["HEAD", "CONNECT"])
def test_some_requests_have_responses_without_a_body(method: str) -> None:
    parser, body = parse(OK + b"Content-Length: 10\r\n\r\n", method)
    assert (parser.complete, body) == (True, b"")


@pytest.mark.parametrize(
    "data",
    [
        OK + b"Connection: Close\r\nContent-Length: 0\r\n\r\n",
        OK + b"Connection: x, close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        OK + b"Content-Length: 2\r\n\r\nok" + OK,
        CHUNKED + b"0\r\n\r\nmore",
    ],
)
def test_a_connection_is_not_used_again_when_it_may_be_closed_or_has_more(data: bytes) -> None:
    parser, _ = parse(data)
    assert parser.complete
    assert not parser.keep_alive


@pytest.mark.parametrize("size", [1, None])
@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 600 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 O\x00K\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\r\n\r\n",
        OK + b"No colon\r\n\r\n",
        OK + b"Sp ace: x\r\n\r\n",
        OK + b": x\r\n\r\n",
        OK + b"A: 1\r\n folded\r\n\r\n",
        OK + b"A: \x01\r\n\r\n",
        OK + b"A: a\rb\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        OK + b"Content-Length: +1\r\n\r\nx",
        OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        CHUNKED + b"xyz\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"1\r\nab\r\n",
        CHUNKED + b"1\r\na\nb",
        CHUNKED + b"1" * 300,
        CHUNKED + b"0\r\nbad trailer\r\n\r\n",
        CHUNKED + b"0\r\nX: y\r\nTransfer-encoding: gzip\r\n\r\n",
        CHUNKED + b"0\r\ncontent-length: 1\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 17,
        OK + b"X: " + b"x" * 70_000,
        CHUNKED + b"0\r\nX: " + b"x" * 70_000,
    ],
)
def test_what_is_not_valid_is_refused(data: bytes, size: int | None) -> None:
    with pytest.raises(HttpError) as caught:
        parse(data, size=size and max(size, len(data) // 2000))
    assert "x" * 20 not in str(caught.value)


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_give_a_result_or_an_http_error_however_they_are_split(data: bytes, size: int) -> None:
    def outcome(size: int | None) -> tuple[int, bytes, bool] | str:
        try:
            parser, body = parse(OK + b"Transfer-Encoding: chunked\r\n" + data, size=size)
        except HttpError:
            return "error"
        return parser.status, body, parser.complete

    assert outcome(size) == outcome(None)


def test_a_request_is_its_line_and_its_fields() -> None:
    fields = encode_fields([("host", "a"), ("accept", "application/json")])
    assert (
        encode_request("GET", "/x?a=b", fields) == b"GET /x?a=b HTTP/1.1\r\nhost: a\r\naccept: application/json\r\n\r\n"
    )


@pytest.mark.parametrize("field", [("a", "b\r\nc: d"), ("a\r\nb", "c"), ("a", "b\nc"), ("a", "\x00"), ("a", "b\rc")])
def test_a_field_cannot_smuggle_another(field: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="control character"):
        encode_fields([field])


@pytest.mark.parametrize("target", ["/a b", "/a\r\nHost: b", "/a\n"])
def test_a_target_cannot_smuggle_a_field(target: str) -> None:
    with pytest.raises(ValueError, match="target"):
        encode_request("GET", target, "")
