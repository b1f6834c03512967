"""The command `konverge fault`: break something of a cluster with process nodes."""

from __future__ import annotations

import asyncio

import click

from konverge.cli.options import option
from konverge.errors import KonvergeError
from konverge_cluster.processes.fault_requests import FAULTS, FAULTS_PATH, Fault

__all__ = ["fault"]


@click.command(name="fault", context_settings={"show_default": True})
@click.argument("fault_name", metavar="FAULT", type=click.Choice(list(FAULTS)))
@click.argument("name")
@option("--namespace", "-n", default="default", help="Namespace of the pod or the claim.")
@option("--container", "-c", default="", help="Container of the pod; the first one by default.")
@option("--volume", default="", help="Volume of the pod, for fill-volume and clear-volume.")
@option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Kubeconfig; found as kubectl does by default."
)
def fault(fault_name: str, name: str, namespace: str, container: str, volume: str, kubeconfig: str | None) -> None:
    """Break something of a cluster that `konverge cluster --run` or `konverge dev --run` started.

    FAULT is what happens, NAME the pod, node or claim that it happens to: kill, freeze and resume a container;
    fill-volume, clear-volume, delete-claim; stop-node, start-node; block-api-server and block-services of a pod, and
    unblock both.

    Example: konverge fault freeze db-0 --kubeconfig konverge.kubeconfig
    """
    wanted = Fault(fault=fault_name, name=name, namespace=namespace, part=volume or container)
    try:
        status, text = asyncio.run(_post(wanted, kubeconfig))
    except KonvergeError as error:
        raise click.ClickException(str(error)) from error
    if status == 404:
        raise click.ClickException("this API server causes no faults: it is not an embedded cluster with --run")
    if status != 200:
        raise click.ClickException(text)
    click.echo(f"{fault_name} {name}")


async def _post(wanted: Fault, kubeconfig: str | None) -> tuple[int, str]:
    # Imported here because the other commands do not need the HTTP library.
    import msgspec

    from konverge.client import load_config
    from konverge.client.transport import HttpTransport
    from konverge.wire.messages import Request

    transport = HttpTransport(load_config(kubeconfig=kubeconfig))
    try:
        headers = {"content-type": "application/json"}
        request = Request("POST", FAULTS_PATH, headers=headers, body=msgspec.json.encode(wanted), timeout=60.0)
        async with await transport.send(request) as response:
            body = await response.read()
    finally:
        await transport.close()
    text = body.decode(errors="replace")
    if body.startswith(b"{"):
        text = str(msgspec.json.decode(body).get("message", text))
    return response.status, text
