"""`konverge manifests`: everything that an operator needs in a cluster, derived from its code."""

from konverge.cli.manifests.command import manifests
from konverge.cli.manifests.release import Release, files_of

__all__ = ["Release", "files_of", "manifests"]
