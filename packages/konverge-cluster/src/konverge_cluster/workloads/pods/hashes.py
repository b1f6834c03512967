"""Hashes in names of objects.

A hash is stable across runs and differs between values. Another control plane computes a different one: nothing may
rely on its value, only on its being the same in name, label and selector.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from konverge.objects.names import GENERATED_NAME_ALPHABET

__all__ = ["name_hash"]


def name_hash(value: Any) -> str:
    """Return the hash of a JSON value, in characters that a name may have."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    number = int.from_bytes(hashlib.blake2s(text.encode(), digest_size=4).digest(), "big")
    return "".join(GENERATED_NAME_ALPHABET[ord(digit) % len(GENERATED_NAME_ALPHABET)] for digit in f"{number:010}")
