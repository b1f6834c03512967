"""Compressed objects: a dictionary built from the first list, the same results, less memory."""

from __future__ import annotations

import json
import sys
import threading

import pytest

from cached_objects import WIDGET, at, widget
from konverge.cache.compression import Compressor
from konverge.cache.entries import CompressedEntry
from konverge.cache.options import CacheOptions
from konverge.cache.store import Store
from konverge.objects import Unstructured

pytest.importorskip("zstandard")


def spec(number: int) -> dict[str, object]:
    env = [{"name": f"VARIABLE_{place}", "value": f"value-{number * place}"} for place in range(20)]
    return {"image": f"example/app:{number}", "environment": env, "strategy": {"type": "RollingUpdate"}}


def widgets(count: int) -> list[bytes]:
    return [widget(f"a-{number}", number + 1, spec=spec(number)) for number in range(count)]


async def filled(count: int, *, compress: bool) -> Store:
    store = Store(WIDGET, options=CacheOptions(compress=compress))
    store.begin()
    for one in widgets(count):
        store.put(one)
    await store.swap(str(count))
    return store


async def test_a_compressed_store_returns_the_same_objects_with_far_fewer_bytes() -> None:
    plain, packed = await filled(300, compress=False), await filled(300, compress=True)
    packed.put(widget("late", 400, spec=spec(7)))
    plain.put(widget("late", 400, spec=spec(7)))

    assert packed.stats().bytes < plain.stats().bytes / 5
    for entry in plain.list():
        twin = packed.get(entry.key)
        assert twin is not None
        assert twin.json == entry.json
        assert twin.read(Unstructured) == entry.read(Unstructured)
        assert (twin.version, twin.uid, twin.key) == (entry.version, entry.uid, entry.key)


async def test_all_entries_share_one_decompress_function() -> None:
    store = await filled(100, compress=True)
    assert len({id(entry.decompress) for entry in store.list() if isinstance(entry, CompressedEntry)}) == 1


async def test_too_few_objects_are_stored_uncompressed() -> None:
    store = await filled(5, compress=True)
    assert store.get(at("a-1")).json == widgets(2)[1]  # type: ignore[union-attr]
    assert store.stats().bytes == sum(map(len, widgets(5)))


async def test_a_list_without_changes_keeps_the_entries() -> None:
    store = await filled(100, compress=True)
    before = store.get(at("a-1"))
    store.begin()
    for one in widgets(100):
        store.put(one)
    await store.swap("200")
    assert store.get(at("a-1")) is before


@pytest.mark.parametrize("documents", [[b"{}"] * 40, [b"x"] * 40, [b'{"same":"%b"}' % (b"y" * 500)] * 40])
def test_samples_that_training_rejects_still_make_a_dictionary(documents: list[bytes]) -> None:
    compressor = Compressor()
    for document in documents:
        compressor.add_sample(document)
    assert compressor.build_dictionary()
    assert [compressor.decompress(compressor.compress(document)) for document in documents] == documents


def test_threads_may_decompress_at_the_same_time() -> None:
    compressor = Compressor()
    documents = [json.dumps(spec(number)).encode() for number in range(200)]
    for document in documents:
        compressor.add_sample(document)
    assert compressor.build_dictionary()
    packed = [compressor.compress(document) for document in documents]
    wrong: list[int] = []

    def unpack() -> None:
        for _ in range(20):
            wrong.extend(n for n, one in enumerate(packed) if compressor.decompress(one) != documents[n])

    threads = [threading.Thread(target=unpack) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_compression_without_its_package_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"^compression needs the package zstandard: pip install 'konverge\[zstd\]'$"):
        Store(WIDGET, options=CacheOptions(compress=True))
