"""Request bodies in protobuf, which kubectl and Go clients send for built-in kinds.

Only requests come in protobuf. Responses are JSON, which every client that sends protobuf also accepts.
"""

from __future__ import annotations

from typing import Any

from konverge.wire.protobuf import ProtobufDecoder, ProtobufError
from konverge_cluster.api.bodies import BodyDecodeError, ObjectDecodeError, read_json

__all__ = ["read_protobuf"]


def _decode_json(text: bytes) -> Any:
    return read_json(text)[0]


_decoder = ProtobufDecoder(decode_json=_decode_json)


def read_protobuf(body: bytes, api_version: str, kind: str) -> dict[str, Any]:
    """Read an object of a built-in kind, or DeleteOptions; `kind` applies where the body names none.

    Raises: BodyDecodeError when the envelope cannot be read; ObjectDecodeError when the object in it cannot.
    """
    try:
        return _decoder.decode(body, api_version, kind)
    except ProtobufError as error:
        if not error.kind:
            raise BodyDecodeError(error.reason) from None
        raise ObjectDecodeError(error.reason, error.kind, error.api_version) from None
