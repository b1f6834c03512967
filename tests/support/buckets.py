"""A bucket in a moto server on this machine, which checks the signature and the rights of each request."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"  # moto reads it once: from the first request on it checks signatures
os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "100"

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import make_server

from konverge.k8s.core.v1 import Secret
from konverge.objects import from_wire
from konverge_operators.database.archive.s3 import S3Bucket

__all__ = ["Bucket", "running_bucket"]

_REGION = "us-east-1"
_RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": ["s3:*Object", "s3:ListBucket"], "Resource": "*"}],
}


class Bucket:
    """The bucket, its place in a spec, and the server that can be away: what it has is kept meanwhile."""

    def __init__(self) -> None:
        self.name = f"backups-{uuid4().hex}"
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(self.name, _REGION)
        users = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
        users.create_user(_REGION, self.name)
        users.put_user_policy(self.name, "objects", json.dumps(_RIGHTS))
        self._key = users.create_access_key(self.name)
        self._port = 0
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def spec(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "bucket": self.name, "prefix": "production", "secretName": "keys"}

    @property
    def secret(self) -> Secret:
        keys = {"AWS_ACCESS_KEY_ID": self._key.access_key_id, "AWS_SECRET_ACCESS_KEY": self._key.secret_access_key}
        metadata = {"name": "keys", "namespace": "test"}
        return from_wire(Secret, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys})

    @property
    def store(self) -> S3Bucket:
        """The objects below the prefix."""
        place = {"endpoint": self.endpoint, "bucket": self.name, "prefix": "production", "region": _REGION}
        return S3Bucket(**place, access_key=self._key.access_key_id, secret_key=self._key.secret_access_key)

    def start(self) -> None:
        """Start the server, again at its address and with what it had."""
        application = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", self._port, application, True, request_handler=MotoRequestHandler)
        self._port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running_bucket() -> Iterator[Bucket]:
    bucket = Bucket()
    try:
        yield bucket
    finally:
        bucket.stop()
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].reset()
