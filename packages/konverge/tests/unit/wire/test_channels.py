from __future__ import annotations

import pytest

from konverge.errors import DecodeError
from konverge.wire import Channel, exit_code, pack_message, unpack_message


@pytest.mark.parametrize("channel", list(Channel))
def test_a_message_comes_back_as_it_was_sent(channel: Channel) -> None:
    assert unpack_message(pack_message(channel, b"a\x00\xff")) == (channel, b"a\x00\xff")


def test_the_first_byte_is_the_channel() -> None:
    assert pack_message(Channel.CLOSE, b"\x00") == b"\xff\x00"
    assert unpack_message(b"\x01") == (Channel.STDOUT, b"")


@pytest.mark.parametrize("message", [b"", b"\x05x", b"\xfe"])
def test_a_message_on_no_channel_is_refused(message: bytes) -> None:
    with pytest.raises(DecodeError):
        unpack_message(message)


def test_the_status_has_the_exit_code() -> None:
    failed = (
        b'{"metadata":{},"status":"Failure","reason":"NonZeroExitCode",'
        b'"details":{"causes":[{"reason":"Other","message":"x"},{"reason":"ExitCode","message":"137"}]}}'
    )
    assert exit_code(b'{"metadata":{},"status":"Success"}') == 0
    assert exit_code(failed) == 137


def test_a_command_that_could_not_be_run_has_no_exit_code() -> None:
    assert exit_code(b'{"status":"Failure","reason":"InternalError","code":500}') is None


@pytest.mark.parametrize(
    "status",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"status":"Failure","reason":"NonZeroExitCode"}',
        b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[]}}',
        b'{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"x"}]}}',
    ],
)
def test_what_is_no_status_is_refused(status: bytes) -> None:
    with pytest.raises(DecodeError):
        exit_code(status)
