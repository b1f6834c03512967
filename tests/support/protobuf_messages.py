"""Encoder of protobuf messages for tests."""

from __future__ import annotations

__all__ = ["enveloped", "number", "text"]


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def text(field: int, value: bytes) -> bytes:
    """Return a field with a string, bytes or a message."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    """Return a field with an integer or a boolean."""
    return _varint(field << 3) + _varint(value)


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a body: magic, apiVersion and kind, and the object."""
    type_meta = text(1, api_version.encode()) + text(2, kind.encode())
    return b"k8s\x00" + text(1, type_meta) + text(2, message)
