"""The two tiers of a small shop, for process nodes. It needs the standard library, and psql or mariadb.

tiers.py backend     answers each request with the number of a new order in the database
tiers.py frontend    answers each request with what the backend answers
tiers.py migrate     creates the tables of the backend
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen


def address_of(url: str) -> str:
    """Return the address of the Service in a URL by its variable, since process nodes have no DNS; its name if none."""
    host = urlsplit(url).hostname or ""
    return os.environ.get(f"{host.upper().replace('-', '_')}_SERVICE_HOST", host)


def is_mariadb() -> bool:
    return urlsplit(os.environ["DATABASE_URL"]).scheme == "mysql"


def query_database(statement: str) -> str:
    """Run a statement in the database of DATABASE_URL, and return its result."""
    url = os.environ["DATABASE_URL"]
    if is_mariadb():
        command, variables = mariadb_client(url)
        command = [*command, f"--execute={statement}"]
    else:
        command = ["psql", url, "--no-psqlrc", "-qtA", "-v", "ON_ERROR_STOP=1", "-c", statement]
        variables = {"PGHOSTADDR": address_of(url)}
    environment = {**os.environ, **variables}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    if result.returncode:
        raise OSError(result.stderr.strip())
    return result.stdout.strip()


def mariadb_client(url: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables of a client of a URL."""
    parts = urlsplit(url)
    options = [f"--host={address_of(url)}", f"--port={parts.port}", f"--user={unquote(parts.username or '')}"]
    command = ["mariadb", "--no-defaults", "--batch", "--skip-column-names", *options, unquote(parts.path[1:])]
    return command, {"MYSQL_PWD": unquote(parts.password or "")}


def backend() -> str:
    row = "() VALUES ()" if is_mariadb() else "DEFAULT VALUES"
    number = query_database(f"INSERT INTO orders {row} RETURNING number")
    return f"order {number}, accepted by {os.environ['POD_NAME']}"


def frontend() -> str:
    url = os.environ["BACKEND_URL"]
    with urlopen(f"http://{address_of(url)}:{urlsplit(url).port}/", timeout=30) as response:
        return str(response.read().decode())


def serve(answer: Callable[[], str]) -> None:
    """Serve HTTP until SIGTERM; the requests in flight are answered before the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                status, body = 200, answer()
            except (OSError, URLError) as error:
                status, body = 502, str(error)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False
        request_queue_size = 128

    server = Server((os.environ["POD_IP"], int(os.environ["PORT"])), Handler)

    def stop(*_: object) -> None:
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    server.serve_forever()
    server.server_close()


def main(role: str) -> None:
    if role == "migrate":
        number = "AUTO_INCREMENT PRIMARY KEY" if is_mariadb() else "GENERATED ALWAYS AS IDENTITY"
        query_database(f"CREATE TABLE IF NOT EXISTS orders (number bigint {number})")
    else:
        serve({"backend": backend, "frontend": frontend}[role])


if __name__ == "__main__":
    main(sys.argv[-1])
