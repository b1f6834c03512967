"""The dictionary of compressed objects: when it is built, of what, and what is compressed from then on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.compression import Compressor
from konverge.cache.decoder import Decoder
from konverge.cache.entries import CompressedEntry, Entry
from konverge.cache.options import CacheOptions
from konverge.cache.store import Store

zstandard: Any = pytest.importorskip("zstandard")

KIB = 1024


def sample(number: int) -> bytes:
    env = [{"name": f"VARIABLE_{place}", "value": f"value-{number * place}"} for place in range(20)]
    return json.dumps({"image": f"example/app:{number}", "environment": env}).encode()


def filled(*samples: bytes) -> Compressor:
    compressor = Compressor()
    for one in samples:
        compressor.add_sample(one)
    return compressor


def test_a_dictionary_is_built_of_300_samples() -> None:
    samples = [b"%03d" % number for number in range(300)]
    assert not filled(*samples[:299]).ready
    compressor = filled(*samples)
    assert compressor.ready
    before = compressor._dictionary
    compressor.add_sample(b"late")
    assert (compressor.build_dictionary(), compressor._dictionary is before) == (True, True)
    assert compressor._samples == [], "they are not needed any more"


def test_a_dictionary_is_built_of_two_mebibytes() -> None:
    compressor = filled(*[b"a" * 64 * KIB] * 31, b"a" * (64 * KIB - 1))
    assert not compressor.ready
    compressor.add_sample(b"a")
    assert compressor.ready


def test_a_dictionary_needs_32_samples() -> None:
    compressor = filled(*(sample(number) for number in range(31)))
    assert not compressor.build_dictionary()
    assert not compressor.ready
    compressor.add_sample(sample(31))
    assert not compressor.ready, "only on demand"
    assert compressor.build_dictionary()
    assert compressor.ready


def test_a_dictionary_is_a_tenth_of_its_samples_and_results_have_no_checksum_and_no_id() -> None:
    samples = [sample(number) for number in range(32)]
    compressor = filled(*samples)
    compressor.build_dictionary()
    trained = zstandard.train_dictionary(sum(map(len, samples)) // 10, samples, k=2048, d=8, level=3)
    trained.precompute_compress(level=3)
    assert compressor._dictionary.as_bytes() == trained.as_bytes()
    reference = zstandard.ZstdCompressor(level=3, dict_data=trained, write_checksum=False, write_dict_id=False)
    assert compressor.compress(sample(99)) == reference.compress(sample(99))
    assert compressor.decompress(compressor.compress(sample(99))) == sample(99)


def test_samples_that_cannot_be_trained_are_the_dictionary_themselves_up_to_64_kibibytes() -> None:
    samples = [b"%d-" % (number % 10) * 2 * KIB for number in range(40)]
    small = filled(*[b"{}"] * 40)
    small.build_dictionary()
    assert small._dictionary.as_bytes() == b"{}" * 40
    large = Compressor()
    large._zstd = Untrainable()
    for one in samples:
        large.add_sample(one)
    large.build_dictionary()
    assert large._dictionary.as_bytes() == b"".join(samples)[-64 * KIB :]
    assert large.decompress(large.compress(samples[0])) == samples[0]


class Untrainable:
    """The package, with samples that it rejects."""

    ZstdError = zstandard.ZstdError
    ZstdCompressionDict = zstandard.ZstdCompressionDict
    ZstdCompressor = zstandard.ZstdCompressor
    ZstdDecompressor = zstandard.ZstdDecompressor
    DICT_TYPE_RAWCONTENT = zstandard.DICT_TYPE_RAWCONTENT

    def train_dictionary(self, *_arguments: object, **_options: object) -> None:
        raise self.ZstdError("rejected")


def test_a_thread_has_one_decompressor() -> None:
    compressor = filled(*[b"{}"] * 32)
    compressor.build_dictionary()
    data = compressor.compress(b"data")
    compressor.decompress(data)
    before = compressor._local.decompressor
    compressor.decompress(data)
    assert compressor._local.decompressor is before


def test_the_level_is_that_of_the_constructor() -> None:
    text = b"".join(sample(number) for number in range(20))
    sizes = []
    for level in (1, 19):
        compressor = Compressor(level)
        for _ in range(32):
            compressor.add_sample(b"{}")
        compressor.build_dictionary()
        sizes.append(len(compressor.compress(text)))
    assert sizes[1] < sizes[0]


# Compressed entries


def test_an_entry_is_compressed_once_there_is_a_dictionary() -> None:
    compressor = Compressor()
    decoder = Decoder(WIDGET, compressor=compressor)
    raw = [widget(f"a-{number}", number + 1, spec={"value": "x" * 100}) for number in range(40)]
    plain = [decoder.decode(one) for one in raw]
    assert {type(one) for one in plain} == {Entry}
    assert decoder.compress(plain[0]) is plain[0]
    compressor.build_dictionary()
    packed = decoder.compress(plain[0])
    assert isinstance(packed, CompressedEntry)
    assert decoder.compress(packed) is packed
    assert packed.json == plain[0].json
    fields = [name for name in Entry.__struct_fields__ if name != "data"]
    assert [getattr(packed, name) for name in fields] == [getattr(plain[0], name) for name in fields]
    assert packed.size == len(packed.data) < plain[0].size
    assert isinstance(decoder.decode(widget("late", 99)), CompressedEntry)


def test_a_decoder_without_compression_leaves_entries_as_they_are() -> None:
    decoder = Decoder(WIDGET)
    entry = decoder.decode(widget("a", 1))
    assert decoder.compress(entry) is entry


async def test_objects_of_the_first_list_and_later_ones_are_compressed() -> None:
    store = Store(WIDGET, options=CacheOptions(compress=True))
    store.begin()
    for number in range(40):
        store.put(widget(f"a-{number}", number + 1))
    await store.swap("50")
    store.put(widget("late", 60))
    assert {type(one) for one in store.delivered()} == {CompressedEntry}
    late = store.get(at("late"))
    assert late is not None
    assert late.json == widget("late", 60)


async def test_objects_are_compressed_by_the_list_that_makes_them_enough() -> None:
    store = Store(WIDGET, options=CacheOptions(compress=True))
    for count, expected in ((20, Entry), (40, CompressedEntry)):
        store.begin()
        for number in range(count):
            store.put(widget(f"a-{number}", number + 1))
        await store.swap("50")
        assert {type(one) for one in store.delivered()} == {expected}
