"""The embedded server gives the responses of the real one: status, warnings and body."""

from __future__ import annotations

import pytest

from script_responses import send_step
from scripts import SCRIPTS
from two_servers import Api, sort_managed_fields


@pytest.mark.parametrize("name", SCRIPTS)
def test_both_servers_give_the_same_responses(both: tuple[Api, Api], name: str) -> None:
    embedded, real = both

    for number, step in enumerate(SCRIPTS[name]):
        ours, theirs = (sort_managed_fields(send_step(api, step)) for api in (embedded, real))

        assert ours == theirs, f"step {number}: {step.method} {step.path} {str(step.body)[:200]}"
