"""Simulations of operators that generate passwords: values may differ from run to run, and never within a run."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from konverge import Context, CustomResource, ObjectMeta, Spec, controller_for
from konverge.k8s.core.v1 import Secret
from konverge.manager import Operator
from konverge_cluster.testing import Simulation, SimulationFailure, simulate
from konverge_cluster.testing.simulation.snapshots import find_generated, hide_generated


class AccountSpec(Spec):
    user: str = "me"


class Account(CustomResource[AccountSpec], group="example.com", version="v1"):
    """A user with a generated password."""


async def _create_once(account: Account, ctx: Context) -> None:
    data = {"user": account.spec.user, "password": secrets.token_urlsafe()}
    await ctx.create_once(Secret(metadata=ObjectMeta(name=account.name), string_data=data))


class _Memory:
    """A mistake: the password is only in memory, so each process generates another one."""

    def __init__(self) -> None:
        self.password = secrets.token_urlsafe()

    async def reconcile(self, account: Account, ctx: Context) -> None:
        data = {"user": account.spec.user, "password": self.password}
        secret = Secret(metadata=ObjectMeta(name=account.name), data={key: one.encode() for key, one in data.items()})
        await ctx.apply(secret)


async def scenario(sim: Simulation) -> None:
    await sim.client.patch(Account, "a", {"metadata": {"labels": {"new": "label"}}})
    await sim.settle()
    await sim.client.delete(Account, "a")


SAMPLES = [Account.new("a", AccountSpec())]


def careful() -> Operator:
    return Operator(name="accounts", controllers=(controller_for(Account).owns(Secret).build(_create_once),))


def forgetful() -> Operator:
    return Operator(name="accounts", controllers=(controller_for(Account).owns(Secret).build(_Memory().reconcile),))


def test_a_password_that_is_created_once_passes() -> None:
    simulate(careful, samples=SAMPLES, seeds=4)(scenario)()


def test_a_password_that_is_generated_again_is_found() -> None:
    with pytest.raises(SimulationFailure, match=r"changed objects when it was restarted .* PATCH secrets default/a"):
        simulate(forgetful, samples=SAMPLES, seeds=4)(scenario)()


def test_values_are_shown_as_which_value_of_the_run_they_are() -> None:
    def state(password: str) -> dict[str, Any]:
        return {"secrets default/a #1": {"kind": "Secret", "data": {"user": "bWU=", "password": password}}}

    generated = find_generated(state("b25l"), state("dHdv"))
    values: dict[tuple[str, str], list[str]] = {}
    shown = [hide_generated(state(one), generated, values) for one in ("b25l", "dGhyZWU=", "b25l")]

    assert generated == {("secrets default/a #1", "password")}
    passwords = [one["secrets default/a #1"]["data"]["password"] for one in shown]
    assert passwords == ["<generated value 1>", "<generated value 2>", "<generated value 1>"]
    assert shown[0]["secrets default/a #1"]["data"]["user"] == "bWU="
