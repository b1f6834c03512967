"""The operator: `konverge dev backup_operator` and `konverge run backup_operator` load it."""

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from backup_operator.api import Backup
from backup_operator.reconciler import BackupReconciler
from backup_operator.store import Store, open_store
from konverge import Client, Operator, controller_for
from konverge.k8s.core.v1 import ConfigMap
from konverge.manager import OpenShared
from konverge.triggers import to_referring

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.yaml"))  # none in an image


def make_operator(open_shared: OpenShared) -> Operator:
    """Return the operator with its store; tests have a fake one."""
    controller = (
        controller_for(Backup)
        .index(Backup, "source", ".spec.source")
        .watches(ConfigMap, to_referring(Backup, index="source"))
        .build(BackupReconciler())
    )
    return Operator(name="backup-operator", controllers=(controller,), samples=tuple(SAMPLES), shared=(open_shared,))


def open_configured_store(_client: Client) -> AbstractAsyncContextManager[Store]:
    """Open the store of the environment variable STORE_URL."""
    return open_store(os.environ.get("STORE_URL", "http://localhost:9000"))


operator = make_operator(open_configured_store)
