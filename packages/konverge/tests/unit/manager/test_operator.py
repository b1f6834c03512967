"""Several operators as one."""

from __future__ import annotations

import pytest

from konverge import Context, CustomResource, Spec, controller_for
from konverge.manager import Operator


class Red(CustomResource[Spec, Spec], group="example.com", version="v1"):
    """A kind."""


class Blue(CustomResource[Spec, Spec], group="example.com", version="v1"):
    """Another kind."""


def operator(kind: type[CustomResource[Spec, Spec]], name: str, controller: str) -> Operator:
    @controller_for(kind).named(controller)
    async def reconcile(_obj: CustomResource[Spec, Spec], _ctx: Context) -> None:
        return None

    return Operator(name=name, controllers=(reconcile,))


def test_a_combined_operator_has_the_parts_of_all() -> None:
    red, blue = operator(Red, "red", "red"), operator(Blue, "blue", "blue")
    both = Operator.combine("both", red, blue)
    assert both.name == "both"
    assert both.controllers == (*red.controllers, *blue.controllers)
    assert both.kinds == (Red, Blue)
    assert set(both.permissions()) == {*red.permissions(), *blue.permissions()}
    assert both.manager().name == "both"


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (operator(Blue, "red", "blue"), "red and red cannot be combined: both have the name red"),
        (operator(Blue, "blue", "red"), "red and blue cannot be combined: both have the controller red"),
        (operator(Red, "blue", "blue"), "red and blue cannot be combined: both have the CRD reds.example.com"),
    ],
)
def test_operators_with_a_part_of_the_same_name_cannot_be_combined(second: Operator, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Operator.combine("both", operator(Red, "red", "red"), second)
