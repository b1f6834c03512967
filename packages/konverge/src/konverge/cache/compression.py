"""Compression of what is held: objects of one kind look alike, so one dictionary makes each of them small.

A dictionary is learned from the first few hundred objects that come, which takes some 10 ms, once; until then entries
are held plain. Assumes the package
`zstandard` (`pip install konverge[zstd]`), loaded only when compression is asked for.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["Packer"]

_SAMPLES = 300
_SAMPLE_BYTES = 2 * 1024 * 1024
_DICTIONARY_BYTES = 64 * 1024
_SEGMENT = 2048
"""How long the pieces are that a dictionary is made of; objects of one kind have long stretches in common."""

_FEWEST = 32
"""A dictionary from fewer objects than this is worth nothing."""


class Packer:
    """Compresses with a dictionary that it learns itself.

    Promises: `unpack(pack(data)) == data`; what was packed can be unpacked for as long as this object lives.
    """

    def __init__(self, level: int = 3) -> None:
        self._zstd = _load()
        self._level = level
        self._samples: list[bytes] = []
        self._sampled = 0
        self._compressor: Any = None
        self._dictionary: Any = None
        self._decompressors = threading.local()  # readers may be threads, and a decompressor serves one at a time

    @property
    def ready(self) -> bool:
        """Whether there is a dictionary."""
        return self._compressor is not None

    def learn(self, data: bytes) -> None:
        """Take one object as a sample, until there is a dictionary; with the last that is needed it is made."""
        if self.ready:
            return
        self._samples.append(data)
        self._sampled += len(data)
        if len(self._samples) >= _SAMPLES or self._sampled >= _SAMPLE_BYTES:
            self.train()

    def train(self) -> bool:
        """Make the dictionary from the samples that there are, if that is worth it; tell whether there is one."""
        if self.ready or len(self._samples) < _FEWEST:
            return self.ready
        size = min(_DICTIONARY_BYTES, max(1024, self._sampled // 10))
        try:
            dictionary = self._zstd.train_dictionary(size, self._samples, k=_SEGMENT, d=8, level=self._level)
        except self._zstd.ZstdError:
            # Samples that are all alike or all tiny teach nothing: they are a dictionary as they are.
            raw = b"".join(self._samples)[-_DICTIONARY_BYTES:]
            dictionary = self._zstd.ZstdCompressionDict(raw, dict_type=self._zstd.DICT_TYPE_RAWCONTENT)
        dictionary.precompute_compress(level=self._level)
        self._samples = []
        self._compressor = self._zstd.ZstdCompressor(
            level=self._level, dict_data=dictionary, write_checksum=False, write_dict_id=False
        )
        self._dictionary = dictionary
        return True

    def pack(self, data: bytes) -> bytes:
        """Compress."""
        # What the compressor gives holds on to a buffer of the full size; a copy does not.
        return bytes(memoryview(self._compressor.compress(data)))

    def unpack(self, data: bytes) -> bytes:
        """Decompress."""
        decompressor = getattr(self._decompressors, "own", None)
        if decompressor is None:
            decompressor = self._decompressors.own = self._zstd.ZstdDecompressor(dict_data=self._dictionary)
        unpacked: bytes = decompressor.decompress(data)
        return unpacked


def _load() -> Any:
    try:
        import zstandard
    except ImportError:
        raise ImportError("compression needs the package zstandard: pip install 'konverge[zstd]'") from None
    return zstandard
