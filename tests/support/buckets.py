"""An S3-compatible store on this machine: one bucket in memory, which checks the signature of each request."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from konverge.k8s.core.v1 import Secret
from konverge.objects import from_wire
from konverge_operators.database.archive.s3 import S3Bucket

__all__ = ["Bucket", "running_bucket"]

_NAME = "backups"
_ACCESS, _SECRET = "example", "secret-example"
_PAGE = 100


class Bucket:
    """The bucket, its place in a spec, and the store that can be away."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, datetime]] = {}
        self._port = 0
        self.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def spec(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "bucket": _NAME, "prefix": "production", "secretName": "keys"}

    @property
    def secret(self) -> Secret:
        keys = {"AWS_ACCESS_KEY_ID": _ACCESS, "AWS_SECRET_ACCESS_KEY": _SECRET}
        metadata = {"name": "keys", "namespace": "test"}
        return from_wire(Secret, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys})

    @property
    def store(self) -> S3Bucket:
        """The objects below the prefix."""
        place = {"endpoint": self.endpoint, "bucket": _NAME, "prefix": "production", "region": "us-east-1"}
        return S3Bucket(**place, access_key=_ACCESS, secret_key=_SECRET)

    def start(self) -> None:
        """Start the store, again at its address and with what it had."""
        handler = type("Handler", (_Handler,), {"bucket": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket

    def do_PUT(self) -> None:
        self.bucket.objects[self._key()] = self._body(), datetime.now(UTC)
        self._reply(200)

    def do_DELETE(self) -> None:
        self._body()
        self.bucket.objects.pop(self._key(), None)
        self._reply(204)

    def do_GET(self) -> None:
        self._body()
        if not self._key():
            self._reply(200, self._page().encode())
        elif self._key() in self.bucket.objects:
            self._reply(200, self.bucket.objects[self._key()][0])
        else:
            self._reply(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix(f"/{_NAME}").lstrip("/")

    def _page(self) -> str:
        """Return a page of keys; the token of the next one is the last key of this one."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        after, prefix = query.get("continuation-token", ""), query.get("prefix", "")
        keys = sorted(key for key in list(self.bucket.objects) if key.startswith(prefix) and key > after)
        items = "".join(self._item(key) for key in keys[:_PAGE])
        token = f"<NextContinuationToken>{escape(keys[_PAGE - 1])}</NextContinuationToken>" if keys[_PAGE:] else ""
        return f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{items}{token}</ListBucketResult>'

    def _item(self, key: str) -> str:
        modified = self.bucket.objects[key][1].isoformat()
        return f"<Contents><Key>{escape(key)}</Key><LastModified>{modified}</LastModified></Contents>"

    def _body(self) -> bytes:
        """Return the body of a request whose signature is right."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert hashlib.sha256(body).hexdigest() == self.headers["x-amz-content-sha256"]
        assert self.headers["Authorization"].endswith(f"Signature={self._signature()}"), "SignatureDoesNotMatch"
        return body

    def _signature(self) -> str:
        url, date = urlsplit(self.path), self.headers["x-amz-date"]
        names = ("host", "x-amz-content-sha256", "x-amz-date")
        lines = [f"{name}:{self.headers[name]}" for name in names]
        digest = self.headers["x-amz-content-sha256"]
        request = "\n".join([self.command, url.path, url.query, *lines, "", ";".join(names), digest])
        scope = [date[:8], "us-east-1", "s3", "aws4_request"]
        hashed = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{_SECRET}".encode()
        for part in (*scope, "\n".join(["AWS4-HMAC-SHA256", date, "/".join(scope), hashed])):
            key = hmac.digest(key, part.encode(), "sha256")
        return key.hex()

    def _reply(self, status: int, content: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def running_bucket() -> Iterator[Bucket]:
    bucket = Bucket()
    try:
        yield bucket
    finally:
        bucket.stop()
