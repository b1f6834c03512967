"""Protobuf messages written by hand."""

from __future__ import annotations

__all__ = ["enveloped", "number", "text"]


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def text(field: int, value: bytes) -> bytes:
    """A field that holds a text, bytes or a message."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    """A field that holds a whole number or a switch."""
    return _varint(field << 3) + _varint(value)


def enveloped(api_version: str, kind: str, message: bytes) -> bytes:
    """A body: magic, the kind, and the object."""
    identity = text(1, api_version.encode()) + text(2, kind.encode())
    return b"k8s\x00" + text(1, identity) + text(2, message)
