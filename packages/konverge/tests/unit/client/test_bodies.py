from __future__ import annotations

import gzip
import zlib
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client.connection.bodies import Decompressor, read_all
from konverge.errors import DecodeError


def unpack(chunks: Iterable[bytes], encoding: str) -> bytes:
    unpacker = Decompressor(encoding)
    whole = b"".join(piece for chunk in chunks for piece in unpacker.feed(chunk))
    unpacker.close()
    return whole


@given(
    st.binary(max_size=2000),
    st.lists(st.integers(0, 2000), max_size=6),
    st.sampled_from(["", "identity", "gzip", "X-GZIP "]),
)
def test_a_body_is_decompressed_whatever_its_chunks(body: bytes, places: list[int], encoding: str) -> None:
    packed = gzip.compress(body) if "gzip" in encoding.lower() else body
    edges = [0, *sorted(min(location, len(packed)) for location in places), len(packed)]
    chunks = [packed[start:end] for start, end in pairwise(edges)]
    assert unpack(filter(None, chunks), encoding) == body


@given(st.binary())
def test_no_bytes_raise_anything_but_decode_errors(garbage: bytes) -> None:
    try:
        unpack([garbage], "gzip")
    except DecodeError:
        return
    assert gzip.decompress(garbage) is not None


@pytest.mark.parametrize("rest", [b"junk", gzip.compress(b"a second one")], ids=["junk", "member"])
@pytest.mark.parametrize("together", [False, True])
def test_nothing_follows_the_end_of_a_gzip_stream(rest: bytes, together: bool) -> None:
    packed = gzip.compress(b"body")
    with pytest.raises(DecodeError, match="goes on after the end"):
        unpack([packed + rest] if together else [packed, rest], "gzip")


def test_a_body_without_bytes_is_empty_whatever_its_encoding() -> None:
    assert unpack([], "gzip") == b""
    with pytest.raises(DecodeError, match="in the middle"):
        unpack([gzip.compress(b"body")[:1]], "gzip")


def test_a_decompression_bomb_is_read_in_small_parts() -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = packer.compress(b"\0" * 20_000_000) + packer.flush()
    pieces = Decompressor("gzip").feed(bomb)
    assert len(next(pieces)) <= 1 << 20


async def pieces_of(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * 10
        assert count < 100, "read past the limit"


async def test_reading_stops_at_the_limit() -> None:
    assert await read_all(pieces_of(3), limit=30) == b"x" * 30
    with pytest.raises(DecodeError, match="larger than 29 bytes"):
        await read_all(pieces_of(3), limit=29)
    assert await read_all(pieces_of(0), limit=1) == b""
