"""Install a whole operator on an embedded cluster: its CRDs, and its webhooks without a socket."""

from __future__ import annotations

from typing import Any

from konverge.client import Client
from konverge.controller import Controller
from konverge.manager import Operator
from konverge.manager.running_manager import RunningManager
from konverge.webhooks import Address, Webhooks, configurations_for
from konverge_cluster.embedded_server import EmbeddedServer
from konverge_cluster.operator_accounts import NAMESPACE

__all__ = ["MissingPermission", "install_operator", "missing_declarations", "whole_operator"]


class MissingPermission(AssertionError):
    """An operator was denied what its generated rights do not include. The text has the rules to add, one a line."""


def whole_operator(parts: tuple[Operator | Controller[Any], ...], name: str) -> Operator:
    """Return the one `Operator` of `parts`, or an operator of these controllers with that name.

    Raises: TypeError for an `Operator` together with anything else.
    """
    controllers = tuple(part for part in parts if not isinstance(part, Operator))
    operators = [part for part in parts if isinstance(part, Operator)]
    if not operators:
        return Operator(name=name, controllers=controllers)
    if len(parts) > 1:
        raise TypeError("run one Operator in each block: write `async with cluster.operator(a), cluster.operator(b):`")
    return operators[0]


async def install_operator(server: EmbeddedServer, client: Client, operator: Operator) -> None:
    """Install CRDs and webhooks, with conversion. An operator that is already installed is updated."""
    address = Address(service=f"{operator.name}-webhooks", namespace=NAMESPACE) if operator.webhooks else None
    if address is not None:
        server.webhook_client.serve(NAMESPACE, address.service, Webhooks(*operator.webhooks).handle_review)
        for configuration in configurations_for(operator.webhooks, address, name=operator.name):
            await client.apply(configuration, force=True)
    for crd in operator.crds(address):
        await client.apply(crd, force=True)


def missing_declarations(running: RunningManager) -> tuple[str, ...]:
    """Return a line for each kind that a controller applied and does not declare: RBAC would forbid it."""
    return tuple(line for controller in running.controllers for line in controller.missing_declarations())
