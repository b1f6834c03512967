"""`konverge run`: an operator against the current cluster, as in production."""

from __future__ import annotations

import os
import socket
from typing import Any

import click

from konverge.cli.options import PORT, host, lease_seconds, namespace, object_name, option, seconds
from konverge.cli.targets import load_operator
from konverge.errors import KonvergeError

__all__ = ["run"]

_SECONDS = {"metavar": "SECONDS"}
_NAME = {"metavar": "NAME"}


@click.command(context_settings={"show_default": True})
@click.argument("target")
@option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; else as kubectl finds it.")
@option("--context", help="Context of the kubeconfig.")
@option(
    "--namespace",
    "-n",
    "namespaces",
    variable="KONVERGE_NAMESPACES",
    multiple=True,
    type=namespace,
    help="Only this namespace; may be given more than once (in the variable: with spaces between).",
    **_NAME,
)
@option("--leader-elect/--no-leader-elect", default=False, help="Work only while holding the lease.")
@option("--lease-name", type=object_name, help="Name of the Lease; the operator's name unless given.", **_NAME)
@option("--lease-namespace", type=namespace, help="Namespace of the Lease; the client's own unless given.", **_NAME)
@option(
    "--lease-duration",
    type=lease_seconds,
    default=15.0,
    help="Whole seconds until others may take an unrenewed lease.",
    **_SECONDS,
)
@option("--metrics-port", type=PORT, default=8080, help="Port of metrics and probes; 0 for none.")
@option("--metrics-host", type=host, default="", help="Address to listen on; all unless given.", metavar="HOST")
@option("--protect-metrics", is_flag=True, help="Ask the API server who may read /metrics and /debug.")
@option("--webhook-port", type=PORT, default=0, help="Port of the webhooks; 0 does not serve them.")
@option("--grace", type=seconds, default=20.0, help="Seconds that running reconciles get when it stops.", **_SECONDS)
@option("--log-format", type=click.Choice(["human", "json"]), default="human", help="For people or for machines.")
@option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
def run(target: str, **options: Any) -> None:
    """Run an operator against the current cluster, as in production.

    TARGET is a package, file or module with an `operator` in it, or TARGET:name for one that is called otherwise. Every
    option can be given as an environment variable too: KONVERGE_LEADER_ELECT=1, KONVERGE_METRICS_PORT=9090.

    Example: konverge run konverge_operators.webapp --leader-elect
    """
    # Loaded here: the other commands need neither the client nor the logs.
    from konverge.client import load_config
    from konverge.telemetry import configure_logs

    operator = load_operator(target)
    _check_ports(options, webhooks=bool(operator.webhooks))
    configure_logs(options["log_format"], options["log_level"].upper())
    try:
        config = load_config(kubeconfig=options["kubeconfig"], context=options["context"])
        manager = operator.manager(config, **_manager_options(operator.name, options))
        if options["webhook_port"] and operator.webhooks:
            home = os.environ.get("POD_NAMESPACE") or config.namespace
            manager.serve_webhooks(operator.serving(home, port=options["webhook_port"]))
        manager.run()
    except (KonvergeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _check_ports(options: dict[str, Any], *, webhooks: bool) -> None:
    """Refuse ports that cannot be had, while the names of their options are still known."""
    metrics, hooks = options["metrics_port"], options["webhook_port"] if webhooks else 0
    if metrics and metrics == hooks:
        raise click.UsageError(
            f"--metrics-port (env var: 'KONVERGE_METRICS_PORT') and --webhook-port (env var: 'KONVERGE_WEBHOOK_PORT')"
            f" are both {metrics}: give each its own"
        )
    if metrics:
        _check_port(options["metrics_host"], metrics, "metrics")
    if hooks:
        _check_port("", hooks, "webhook")


def _check_port(address: str, port: int, what: str) -> None:
    family = socket.AF_INET6 if address.startswith("[") else socket.AF_INET
    try:
        socket.create_server((address.strip("[]"), port), family=family).close()
    except OSError as error:
        place = f"{address}:{port}" if address else f"port {port}"
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)  # no errno: a host's name
        raise click.ClickException(
            f"{place} cannot be listened on: {reason}"
            f" (choose another: --{what}-port, env var: 'KONVERGE_{what.upper()}_PORT')"
        ) from error


def _manager_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    from konverge.manager import Election, Endpoints

    duration = options["lease_duration"]
    election = None
    if options["leader_elect"]:
        election = Election(
            options["lease_name"] or name,
            options["lease_namespace"] or "",
            lease=duration,
            renew_deadline=duration * 2 / 3,
            retry=duration * 2 / 15,
            margin=min(1.0, duration / 6),
        )
    address = f"{options['metrics_host']}:{options['metrics_port']}"
    return {
        "namespaces": tuple(options["namespaces"]),
        "election": election,
        "probes": Endpoints(address, protected=options["protect_metrics"]) if options["metrics_port"] else None,
        "grace": options["grace"],
    }
