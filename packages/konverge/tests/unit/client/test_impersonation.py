"""The Impersonate- headers."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.client.impersonation import Impersonation


def test_every_part_has_its_header_and_lists_repeat_it() -> None:
    act_as = Impersonation("jane", uid="42", groups=("dev", "ops"), extra={"scopes": ("a", "b"), "acme.com/é": ("c",)})

    assert act_as.headers() == (
        ("impersonate-user", "jane"),
        ("impersonate-uid", "42"),
        ("impersonate-group", "dev"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-scopes", "a"),
        ("impersonate-extra-scopes", "b"),
        ("impersonate-extra-acme.com%2F%C3%A9", "c"),
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_extra_name_survives_the_way_through_a_header(name: str) -> None:
    (_, (header, _)) = Impersonation("jane", extra={name: ("x",)}).headers()

    assert header.isascii()
    assert header.isprintable()
    assert unquote(header.removeprefix("impersonate-extra-")) == name


@pytest.mark.parametrize("break_", ["\r", "\n", "\0"])
def test_a_value_cannot_smuggle_in_another_header(break_: str) -> None:
    for wrong in ({"user": f"a{break_}b"}, {"user": "a", "groups": (f"a{break_}b",)}, {"user": "a", "uid": break_}):
        with pytest.raises(ValueError, match="a header cannot contain a line break"):
            Impersonation(**wrong)


def test_groups_without_a_user_are_refused() -> None:
    with pytest.raises(ValueError, match="need a user"):
        Impersonation("", groups=("dev",))
