"""The channels of `pods/exec` and `pods/attach`: several streams in one WebSocket.

The first byte of each message is its channel. In v5.channel.k8s.io a message on CLOSE names the channel that the sender
has closed; in v4.channel.k8s.io no stream can be closed alone. The last message is a Status on ERROR.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import msgspec

from konverge.errors import DecodeError

__all__ = ["V4_CHANNELS", "V5_CHANNELS", "Channel", "exit_code", "pack_message", "unpack_message"]

V5_CHANNELS: Final = "v5.channel.k8s.io"
V4_CHANNELS: Final = "v4.channel.k8s.io"

_NON_ZERO: Final = "NonZeroExitCode"


class Channel(IntEnum):
    """A stream of a WebSocket."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    RESIZE = 4
    CLOSE = 255


def pack_message(channel: Channel, content: bytes) -> bytes:
    """Return a message on a channel."""
    return bytes((channel,)) + content


def unpack_message(message: bytes) -> tuple[Channel, bytes]:
    """Return the channel and the content of a message.

    Raises: DecodeError for a message without a channel, or on an unknown one.
    """
    if not message:
        raise DecodeError("a message on a WebSocket has no channel")
    try:
        return Channel(message[0]), message[1:]
    except ValueError:
        raise DecodeError(f"a message on a WebSocket has the unknown channel {message[0]}") from None


def exit_code(status: bytes) -> int | None:
    """Return the exit code in the Status of a command, None when the command could not be run.

    Raises: DecodeError when it is not a Status.
    """
    try:
        document: Any = msgspec.json.decode(status)
        if document["status"] == "Success":
            return 0
        if document.get("reason") != _NON_ZERO:
            return None
        causes = document["details"]["causes"]
        return next(int(one["message"]) for one in causes if one["reason"] == "ExitCode")
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, ValueError, StopIteration) as error:
        raise DecodeError(f"the status of a command cannot be decoded: {status[:200]!r}") from error
