"""The command line: `konverge --help` explains each command with an example."""

from __future__ import annotations

import click

from konverge.cli.cluster import cluster, nodes
from konverge.cli.crd import crd, sample
from konverge.cli.demo import demo
from konverge.cli.dev import dev
from konverge.cli.manifests.command import manifests
from konverge.cli.models import models
from konverge.cli.run import run
from konverge.cli.why import why

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="konverge")
def main() -> None:
    """Kubernetes operators in Python."""


main.add_command(cluster)
main.add_command(crd)
main.add_command(demo)
main.add_command(dev)
main.add_command(manifests)
main.add_command(models)
main.add_command(nodes)
main.add_command(run)
main.add_command(sample)
main.add_command(why)
