"""`konverge run`: an operator against the current cluster, as in production."""

from __future__ import annotations

import os
from typing import Any

import click

from konverge.cli.targets import load_operator
from konverge.errors import KonvergeError
from konverge.objects import safe_name

__all__ = ["run"]


@click.command(context_settings={"auto_envvar_prefix": "KONVERGE", "show_default": True})
@click.argument("target")
@click.option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; else as kubectl finds it."
)
@click.option("--context", help="Context of the kubeconfig.")
@click.option(
    "--namespace", "-n", "namespaces", multiple=True, help="Only this namespace; may be given more than once."
)
@click.option("--leader-elect/--no-leader-elect", default=False, help="Work only while holding the lease.")
@click.option("--lease-name", help="Name of the Lease; the operator's name unless given.")
@click.option("--lease-namespace", help="Namespace of the Lease; the client's own unless given.")
@click.option("--lease-duration", type=float, default=15.0, help="Seconds until others may take an unrenewed lease.")
@click.option("--metrics-port", type=int, default=8080, help="Port of metrics and probes; 0 for none.")
@click.option("--metrics-host", default="", help="Address to listen on; all unless given.")
@click.option("--protect-metrics", is_flag=True, help="Ask the API server who may read /metrics and /debug.")
@click.option("--webhook-port", type=int, default=0, help="Port of the webhooks; 0 does not serve them.")
@click.option("--grace", type=float, default=20.0, help="Seconds that running reconciles get when it stops.")
@click.option("--log-format", type=click.Choice(["human", "json"]), default="human", help="For people or for machines.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
def run(target: str, **options: Any) -> None:
    """Run an operator against the current cluster, as in production.

    TARGET is a package, file or module with an `operator` in it. Every option can be given as an environment variable
    too: KONVERGE_LEADER_ELECT=1, KONVERGE_METRICS_PORT=9090.

    Example: konverge run operators/webapp --leader-elect
    """
    # Loaded here: the other commands need neither the client nor the logs.
    from konverge.client import load_config
    from konverge.telemetry import configure_logs

    for namespace in options["namespaces"]:
        if not namespace or safe_name(namespace) != namespace:
            raise click.UsageError(
                f"--namespace: {namespace!r} is no name of a namespace (leave it out for all of them)"
            )
    operator = load_operator(target)
    configure_logs(options["log_format"], options["log_level"].upper())
    try:
        config = load_config(kubeconfig=options["kubeconfig"], context=options["context"])
        manager = operator.manager(config, **_manager_options(operator.name, options))
        if options["webhook_port"] and operator.webhooks:
            namespace = os.environ.get("POD_NAMESPACE") or config.namespace
            manager.serve_webhooks(operator.serving(namespace, port=options["webhook_port"]))
        manager.run()
    except (KonvergeError, ValueError) as error:
        raise click.ClickException(str(error)) from error


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
