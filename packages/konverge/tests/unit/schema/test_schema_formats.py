"""Formats, checked as the server checks them; tests/contract compares with a real server."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.objects.codec import to_wire
from konverge.schema.formats import FORMATS, has_format


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("byte", ["YQ==", "YWJj"], ["", "YQ", "YW-_"]),
        ("cidr", ["10.0.0.0/8", "fd00::/64", "::ffff:1.2.3.04/96"], ["10.0.0.0", "10.0.0.0/33", "::/129", "a/8"]),
        ("date", ["2024-02-29", "0000-02-29"], ["2026-02-29", "26-01-01", "2026-1-1"]),
        ("date-time", ["2026-01-01T00:00:00Z", "2026-01-01t00:00:00.5+01:00"], ["2026-01-01", "2026-01-01T24:00:00Z"]),
        ("duration", ["90s", "0", "2 days", "1.5h"], ["", "1", "s", "1 fortnight"]),
        ("ipv4", ["10.0.0.1", "010.0.0.1", "::ffff:1.2.3.4"], ["256.0.0.1", "1.2.3", "::1"]),
        ("ipv6", ["::1", "::ffff:1.2.3.4"], ["10.0.0.1", "fe80::1%eth0", "::1.2.3.04"]),
        ("mac", ["01:23:45:67:89:ab", "0123.4567.89ab"], ["01:23:45:67:89", "01:23-45:67:89:ab"]),
        ("uuid4", ["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
        ("k8s-short-name", ["a-1"], ["a.b", "A", "a" * 64]),
        ("k8s-long-name", ["a.b-1"], ["a..b", "a" * 254]),
        ("uri", ["anything"], []),
        ("unheard-of", ["anything"], []),
    ],
)
def test_a_text_has_a_format_or_not(name: str, good: list[str], bad: list[str]) -> None:
    assert all(has_format(name, text) for text in good)
    assert not any(has_format(name, text) for text in bad)


@settings(max_examples=50)
@given(st.datetimes(timezones=st.just(UTC)), st.uuids(), st.binary(min_size=1), st.dates())
def test_encoded_values_have_the_format_of_their_type(
    at: datetime, identity: uuid.UUID, data: bytes, day: date
) -> None:
    written = {"date-time": at, "uuid": identity, "byte": data, "date": day}

    assert all(has_format(name, to_wire(value)) for name, value in written.items())


def test_formats_have_the_names_of_the_server() -> None:
    assert "date-time" in FORMATS
    assert all(name == name.lower() for name in FORMATS)
