"""Objects in a bucket of an S3-compatible store, with requests signed by AWS Signature Version 4."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode, urlsplit
from xml.etree import ElementTree

from konverge_operators.database.archive.stores import ArchiveError, Stored

__all__ = ["S3Bucket", "signed_headers"]

_ATTEMPTS: Final = 4
_TIMEOUT: Final = 30.0
_OK: Final = (200, 204)
_MISSING: Final = 404
_BUSY: Final = (429, 500, 502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class S3Bucket:
    """A bucket, addressed by path. A request that a busy store refuses is tried again."""

    endpoint: str
    bucket: str
    prefix: str
    region: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    def put(self, key: str, content: bytes) -> None:
        self._expect(self._send("PUT", key, content), f"write {key}")

    def get(self, key: str) -> bytes:
        return self._expect(self._send("GET", key), f"read {key}")

    def delete(self, key: str) -> None:
        status, body = self._send("DELETE", key)
        if status != _MISSING:
            self._expect((status, body), f"delete {key}")

    def list(self, prefix: str) -> list[Stored]:
        found: list[Stored] = []
        query = {"list-type": "2", "prefix": self._key(prefix)}
        while True:
            page = ElementTree.fromstring(self._expect(self._send("GET", None, query=query), f"list {prefix}"))
            space = page.tag.partition("}")[0] + "}" if page.tag.startswith("{") else ""
            found += [self._stored(one, space) for one in page.iter(f"{space}Contents")]
            token = page.findtext(f"{space}NextContinuationToken")
            if not token:
                return sorted(found, key=lambda one: one.key)
            query["continuation-token"] = token

    def _stored(self, element: ElementTree.Element, space: str) -> Stored:
        key = element.findtext(f"{space}Key", "")
        modified = datetime.fromisoformat(element.findtext(f"{space}LastModified", ""))
        return Stored(key.removeprefix(self._key("")), modified)

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def _send(
        self, method: str, key: str | None, body: bytes = b"", query: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        target = f"/{self.bucket}" if key is None else f"/{self.bucket}/{self._key(key)}"
        path, parameters = quote(target, safe="/-_.~"), urlencode(sorted((query or {}).items()), quote_via=quote)
        problem = ""
        for attempt in range(_ATTEMPTS):
            try:
                status, content = self._request(method, path, parameters, body)
            except OSError as error:
                problem = f"{type(error).__name__}: {error}"
            except http.client.HTTPException as error:
                problem = type(error).__name__
            else:
                if status not in _BUSY:
                    return status, content
                problem = f"status {status}"
            if attempt + 1 < _ATTEMPTS:
                time.sleep(0.2 * 2**attempt)
        raise ArchiveError(f"the store {self.endpoint} does not answer: {problem}")

    def _request(self, method: str, path: str, parameters: str, body: bytes) -> tuple[int, bytes]:
        url = urlsplit(self.endpoint)
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.netloc, timeout=_TIMEOUT)
        try:
            headers = signed_headers(self, method, path, parameters, hashlib.sha256(body).hexdigest(), url.netloc)
            connection.request(method, f"{path}?{parameters}" if parameters else path, body or None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _expect(self, response: tuple[int, bytes], what: str) -> bytes:
        status, body = response
        if status not in _OK:
            raise ArchiveError(f"cannot {what}: status {status} {_code(body)}".rstrip())
        return body


def _code(body: bytes) -> str:
    """Return the code of an error: NoSuchBucket, AccessDenied, ..."""
    try:
        return ElementTree.fromstring(body).findtext("Code") or ""
    except ElementTree.ParseError:
        return ""


def signed_headers(
    bucket: S3Bucket, method: str, path: str, parameters: str, digest: str, host: str, at: datetime | None = None
) -> dict[str, str]:
    """Return the headers of a request: the time, the hash of its body, and the signature of everything."""
    moment = (at or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": moment}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join([method, path, parameters, lines, names, digest])
    scope = f"{moment[:8]}/{bucket.region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{bucket.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"Credential={bucket.access_key}/{scope}"
    return {
        **headers,
        "Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}",
    }
