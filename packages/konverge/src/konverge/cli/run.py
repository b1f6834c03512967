"""The command `konverge run`: run an operator against the current cluster, as in production."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from konverge.cli.options import PORT, host, lease_seconds, namespace, object_name, option, seconds
from konverge.cli.targets import load_operator
from konverge.errors import KonvergeError

if TYPE_CHECKING:
    from konverge.client import ClientConfig
    from konverge.manager import Endpoints, Operator, WebhookServing
    from konverge.webhooks import Address

__all__ = ["run"]

_SECONDS = {"metavar": "SECONDS"}
_NAME = {"metavar": "NAME"}


@click.command(context_settings={"show_default": True})
@click.argument("target")
@option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; found as kubectl does by default."
)
@option("--context", help="Context of the kubeconfig.")
@option(
    "--namespace",
    "-n",
    "namespaces",
    variable="KONVERGE_NAMESPACES",
    multiple=True,
    type=namespace,
    help="Watch only this namespace; may be repeated (in the variable: separated by spaces).",
    **_NAME,
)
@option("--install-crds", is_flag=True, help="Install the CRDs of the operator's kinds first, or update them.")
@option(
    "--cache-sync-timeout",
    type=seconds,
    default=0.0,
    help="Exit when a cache is not synced after this many seconds; 0 waits.",
    **_SECONDS,
)
@option(
    "--installation",
    type=namespace,
    help="Name of this installation: of its Lease, its certificate and its webhooks; the operator's name by default.",
    **_NAME,
)
@option("--leader-elect/--no-leader-elect", default=False, help="Reconcile only while this process is the leader.")
@option("--lease-name", type=object_name, help="Name of the Lease; the installation's by default.", **_NAME)
@option("--lease-namespace", type=namespace, help="Namespace of the Lease; the client's own by default.", **_NAME)
@option(
    "--lease-duration",
    type=lease_seconds,
    default=15.0,
    help="Whole seconds until another replica may take a lease that is not renewed.",
    **_SECONDS,
)
@option("--metrics-port", type=PORT, default=8080, help="Port of metrics, debug and probes; 0 disables them.")
@option(
    "--metrics-host",
    type=host,
    help="Address to listen on; by default loopback, and all addresses in a pod.",
    metavar="HOST",
)
@option(
    "--insecure-metrics",
    is_flag=True,
    help="Serve /metrics and /debug to everybody, in plain HTTP. Without it only a loopback address does; others serve"
    " HTTPS, and the API server decides who may read.",
)
@option("--probe-port", type=PORT, default=0, help="Another port of probes only, always in plain HTTP; 0 disables it.")
@option("--webhook-port", type=PORT, default=0, help="Port of the webhooks; 0 disables them.")
@option("--grace", type=seconds, default=20.0, help="Seconds for active reconciles to finish at shutdown.", **_SECONDS)
@option("--log-format", type=click.Choice(["human", "json"]), default="human", help="Plain text or JSON.")
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
def run(target: str, **options: Any) -> None:
    """Run an operator against the current cluster, as in production.

    TARGET is a package, file or module that defines `operator`, or TARGET:name if the operator has another name. Every
    option can also be set by an environment variable: KONVERGE_LEADER_ELECT=1, KONVERGE_METRICS_PORT=9090.

    Example: konverge run konverge_operators.webapp --leader-elect
    """
    # Imported here because the other commands do not need these modules.
    from konverge.client import load_config
    from konverge.telemetry import configure_logging

    operator = load_operator(target)
    _check_ports(options, webhooks=bool(operator.webhooks))
    configure_logging(options["log_format"], options["log_level"].upper())
    try:
        config = load_config(kubeconfig=options["kubeconfig"], context=options["context"])
        operator = _with_timeout(operator, options["cache_sync_timeout"])
        asyncio.run(_prepare(config, operator, target, options))
        manager = operator.manager(config, **_manager_options(_installation(operator, options), options))
        if options["webhook_port"] and operator.webhooks:
            manager.serve_webhooks(_serving(config, operator, options))
        manager.run()
    except (KonvergeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _with_timeout(operator: Operator, timeout: float) -> Operator:
    """Return the operator with this cache-sync timeout for each controller; 0 leaves them as they are."""
    if not timeout:
        return operator
    return replace(
        operator, controllers=tuple(replace(one, cache_sync_timeout=timeout) for one in operator.controllers)
    )


async def _prepare(config: ClientConfig, operator: Operator, target: str, options: dict[str, Any]) -> None:
    """Install CRDs if requested, and log what will keep the operator from its work."""
    from konverge.cli.crd_installation import install_crds
    from konverge.cli.server_check import check_server
    from konverge.cli.start_check import start_warnings
    from konverge.client import Client

    if options["install_crds"]:
        await check_server(config)
        async with Client.connect(config) as client:
            await install_crds(client, operator.crds(_webhook_address(config, operator, options)))
    lease_namespace = (options["lease_namespace"] or config.namespace) if options["leader_elect"] else ""
    for warning in await start_warnings(config, operator, target, options["namespaces"], lease_namespace):
        logging.getLogger("konverge.run").warning(warning)


def _webhook_address(config: ClientConfig, operator: Operator, options: dict[str, Any]) -> Address | None:
    """Return the address of the conversion webhook in CRDs; None if this process serves no webhooks."""
    from konverge.webhooks import Address

    if not (options["webhook_port"] and operator.webhooks):
        return None
    return Address(service=f"{_installation(operator, options)}-webhooks", namespace=_own_namespace(config))


def _serving(config: ClientConfig, operator: Operator, options: dict[str, Any]) -> WebhookServing:
    name = _installation(operator, options)
    return operator.serving(_own_namespace(config), port=options["webhook_port"], installation=name)


def _installation(operator: Operator, options: dict[str, Any]) -> str:
    return options["installation"] or operator.name


def _own_namespace(config: ClientConfig) -> str:
    return os.environ.get("POD_NAMESPACE") or config.namespace


def _check_ports(options: dict[str, Any], *, webhooks: bool) -> None:
    """Refuse ports that are not available, so that the error can name the option."""
    ports = {one: options[f"{one}_port"] for one in ("metrics", "probe", "webhook") if one != "webhook" or webhooks}
    if ports["probe"] and not ports["metrics"]:
        raise click.UsageError(f"{_flag('probe')} needs {_flag('metrics')}, which is 0")
    used: dict[int, str] = {}
    for what, port in ports.items():
        if not port:
            continue
        if port in used:
            raise click.UsageError(f"{_flag(used[port])} and {_flag(what)} are both {port}: use two different ports")
        used[port] = what
        _check_port(_metrics_host(options) if what == "metrics" else "", port, what)


def _flag(what: str) -> str:
    return f"--{what}-port (env var: 'KONVERGE_{what.upper()}_PORT')"


def _metrics_host(options: dict[str, Any]) -> str:
    """Return the address of metrics: in a pod they are for others, anywhere else for the user of this machine."""
    given: str | None = options["metrics_host"]
    if given is not None:
        return given
    return "" if os.environ.get("KUBERNETES_SERVICE_HOST") else "127.0.0.1"


def _check_port(address: str, port: int, what: str) -> None:
    family = socket.AF_INET6 if address.startswith("[") else socket.AF_INET
    try:
        socket.create_server((address.strip("[]"), port), family=family).close()
    except OSError as error:
        place = f"{address}:{port}" if address else f"port {port}"
        # Errors of name resolution have no errno of the system.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise click.ClickException(
            f"cannot listen on {place}: {reason}"
            f" (choose another with --{what}-port, env var: 'KONVERGE_{what.upper()}_PORT')"
        ) from error


def _manager_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    from konverge.manager import LeaderElection

    duration = options["lease_duration"]
    leader_election = None
    if options["leader_elect"]:
        leader_election = LeaderElection(
            options["lease_name"] or name,
            options["lease_namespace"] or "",
            lease_duration=duration,
            renew_deadline=duration * 2 / 3,
            retry_period=duration * 2 / 15,
            margin=min(1.0, duration / 6),
        )
    return {
        "namespaces": tuple(options["namespaces"]),
        "leader_election": leader_election,
        "probes": _endpoints(options),
        "grace": options["grace"],
    }


def _endpoints(options: dict[str, Any]) -> Endpoints | None:
    from konverge.manager import Endpoints

    if not options["metrics_port"]:
        return None
    return Endpoints(
        f"{_metrics_host(options)}:{options['metrics_port']}",
        protected=False if options["insecure_metrics"] else None,
        probes=f":{options['probe_port']}" if options["probe_port"] else "",
    )
