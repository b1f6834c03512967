"""Which errors of a reconcile follow from a deletion, and what the worker does about them."""

from __future__ import annotations

import pytest

from konverge.controller.deletions import is_deletion_error
from konverge.errors import ApiError, Cause, Conflict, Forbidden, NotFound, ServerError
from konverge.objects import Key

KEY = Key("shop", "web")
TERMINATING = (Cause("", "NamespaceTerminating", "metadata.namespace"),)


def test_the_object_itself_is_gone() -> None:
    assert is_deletion_error(NotFound("x", verb="patch", kind="WebApp", key="shop/web"), "WebApp", KEY)


@pytest.mark.parametrize(
    "error",
    [
        NotFound("x", verb="create", kind="Pod", key="shop"),
        NotFound("x", verb="create", kind="Pod", key="shop/web-1"),
        Forbidden("x", verb="create", kind="Pod", key="shop", causes=TERMINATING),
    ],
)
def test_a_create_in_a_namespace_that_is_going(error: ApiError) -> None:
    assert is_deletion_error(error, "WebApp", KEY)


@pytest.mark.parametrize(
    "error",
    [
        NotFound("x", verb="patch", kind="WebApp", key="shop/other"),
        NotFound("x", verb="patch", kind="Pod", key="shop/web"),
        NotFound("x", verb="create", kind="Pod", key="shop-2"),
        Forbidden("x", verb="create", kind="Pod", key="other", causes=TERMINATING),
        Forbidden("x", verb="create", kind="Pod", key="shop"),
        Conflict("x", verb="patch", kind="WebApp", key="shop/web"),
        ServerError("x", verb="patch", kind="WebApp", key="shop/web"),
        ValueError("x"),
    ],
)
def test_all_others_are_real(error: Exception) -> None:
    assert not is_deletion_error(error, "WebApp", KEY)


def test_an_object_without_namespace_has_no_namespace_that_goes() -> None:
    error = NotFound("x", verb="create", kind="Pod", key="")

    assert not is_deletion_error(error, "Fleet", Key("", "web"))
