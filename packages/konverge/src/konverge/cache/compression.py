"""Compression of cached objects: objects of one kind are similar, so one shared dictionary makes each of them small.

A dictionary is built from the first few hundred objects, once, in about 10 ms; until then entries are stored
uncompressed. Assumes the package `zstandard` (`pip install konverge[zstd]`), imported only when compression is enabled.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["Compressor"]

_MAX_SAMPLES = 300
_MAX_SAMPLE_BYTES = 2 * 1024 * 1024
_DICTIONARY_BYTES = 64 * 1024
_SEGMENT = 2048
"""The length of the segments that make up a dictionary; objects of one kind have long runs of bytes in common."""

_MIN_SAMPLES = 32
"""A dictionary built from fewer objects than this is useless."""


class Compressor:
    """Compresses with a dictionary that it builds from samples.

    Promises: `decompress(compress(data)) == data`; compressed data can be decompressed as long as this object lives.
    """

    def __init__(self, level: int = 3) -> None:
        self._zstd = _load()
        self._level = level
        self._samples: list[bytes] = []
        self._sample_bytes = 0
        self._compressor: Any = None
        self._dictionary: Any = None
        self._local = threading.local()  # readers may be threads, and a decompressor serves one thread at a time

    @property
    def ready(self) -> bool:
        """Whether there is a dictionary."""
        return self._compressor is not None

    def add_sample(self, data: bytes) -> None:
        """Add an object to the samples, unless there is a dictionary; build the dictionary once there are enough."""
        if self.ready:
            return
        self._samples.append(data)
        self._sample_bytes += len(data)
        if len(self._samples) >= _MAX_SAMPLES or self._sample_bytes >= _MAX_SAMPLE_BYTES:
            self.build_dictionary()

    def build_dictionary(self) -> bool:
        """Build the dictionary from the samples so far, if there are enough; report whether there is one."""
        if self.ready or len(self._samples) < _MIN_SAMPLES:
            return self.ready
        size = min(_DICTIONARY_BYTES, max(1024, self._sample_bytes // 10))
        try:
            dictionary = self._zstd.train_dictionary(size, self._samples, k=_SEGMENT, d=8, level=self._level)
        except self._zstd.ZstdError:
            # Training fails on samples that are all equal or all tiny: use their raw content as the dictionary.
            raw = b"".join(self._samples)[-_DICTIONARY_BYTES:]
            dictionary = self._zstd.ZstdCompressionDict(raw, dict_type=self._zstd.DICT_TYPE_RAWCONTENT)
        dictionary.precompute_compress(level=self._level)
        self._samples = []
        self._compressor = self._zstd.ZstdCompressor(
            level=self._level, dict_data=dictionary, write_checksum=False, write_dict_id=False
        )
        self._dictionary = dictionary
        return True

    def compress(self, data: bytes) -> bytes:
        """Compress data; there must be a dictionary."""
        # The compressor's result keeps a buffer of the full size alive; a copy does not.
        return bytes(memoryview(self._compressor.compress(data)))

    def decompress(self, data: bytes) -> bytes:
        """Decompress data."""
        decompressor = getattr(self._local, "decompressor", None)
        if decompressor is None:
            decompressor = self._local.decompressor = self._zstd.ZstdDecompressor(dict_data=self._dictionary)
        decompressed: bytes = decompressor.decompress(data)
        return decompressed


def _load() -> Any:
    try:
        import zstandard
    except ImportError:
        raise ImportError("compression needs the package zstandard: pip install 'konverge[zstd]'") from None
    return zstandard
