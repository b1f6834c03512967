"""A small application for process nodes: notes in a database, with a cache before it. It needs psql or mariadb.

PUT /name     stores the body as a note in the database, and removes it from the cache
GET /name     answers with the note, and with where it was found: in the cache or in the database
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TABLE = "CREATE TABLE IF NOT EXISTS notes (name varchar(200) PRIMARY KEY, content text NOT NULL);"
STORE = "DELETE FROM notes WHERE name = {name}; INSERT INTO notes VALUES ({name}, {content});"
READ = "SELECT content FROM notes WHERE name = {name};"


def address_of(url: str) -> str:
    """Return the address of the Service in a URL by its variable, since process nodes have no DNS; its name if none."""
    host = urlsplit(url).hostname or ""
    return os.environ.get(f"{host.upper().replace('-', '_')}_SERVICE_HOST", host)


def query(statement: str, **values: str) -> str:
    """Run statements in the database in one transaction, and return the result; `values` are those of {name}."""
    url = os.environ["DATABASE_URL"]
    client = mariadb_client if urlsplit(url).scheme == "mysql" else postgresql_client
    command, variables, literals = client(url, values)
    result = subprocess.run(
        command,
        env={**os.environ, **variables},
        input=f"{TABLE} BEGIN; {statement.format(**literals)} COMMIT;",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if result.returncode:
        raise OSError(result.stderr.strip())
    return result.stdout.strip()


def postgresql_client(url: str, values: dict[str, str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the command of a client, its variables, and values as it quotes them."""
    words = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
    command = ["psql", url, "--no-psqlrc", "-qtA", "-v", "ON_ERROR_STOP=1", *words]
    return command, {"PGHOSTADDR": address_of(url)}, {name: f":'{name}'" for name in values}


def mariadb_client(url: str, values: dict[str, str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Return the same for MariaDB."""
    parts = urlsplit(url)
    options = [f"--host={address_of(url)}", f"--port={parts.port}", f"--user={unquote(parts.username or '')}"]
    command = ["mariadb", "--no-defaults", "--batch", "--raw", "--skip-column-names", *options, unquote(parts.path[1:])]
    literals = {name: f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)" for name, value in values.items()}
    return command, {"MYSQL_PWD": unquote(parts.password or "")}, literals


def call_cache(*words: str) -> str | None:
    """Send a command to the cache; return its answer, None for a missing key."""
    url = urlsplit(os.environ["CACHE_URL"])
    with socket.create_connection((address_of(url.geturl()), url.port or 6379), timeout=5) as connection:
        stream = connection.makefile("rwb")
        answer = None
        for command in (("AUTH", url.password or ""), words):
            stream.write(b"*%d\r\n" % len(command))
            for word in command:
                stream.write(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()))
            stream.flush()
            head = stream.readline().decode().strip()
            if head.startswith("-"):
                raise OSError(head)
            answer = head[1:]
            if head.startswith("$"):
                answer = stream.read(int(head[1:]) + 2)[:-2].decode() if head != "$-1" else None
        return answer


def find(name: str) -> tuple[int, str]:
    cached = call_cache("GET", name)
    if cached is not None:
        return 200, f"{cached} (cache)"
    content = query(READ, name=name)
    if not content:
        return 404, "no such note"
    call_cache("SET", name, content)
    return 200, f"{content} (database)"


def store(name: str, content: str) -> tuple[int, str]:
    query(STORE, name=name, content=content)
    call_cache("DEL", name)
    return 200, "stored"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(lambda: find(self.path[1:]))

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer(lambda: store(self.path[1:], content))

    def answer(self, work: Any) -> None:
        try:
            status, body = work()
        except OSError as error:
            status, body = 502, str(error)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        pass


def main() -> None:
    """Serve HTTP until SIGTERM."""
    server = ThreadingHTTPServer((os.environ["POD_IP"], int(os.environ["PORT"])), Handler)
    signal.signal(signal.SIGTERM, lambda _number, _frame: threading.Thread(target=server.shutdown).start())
    server.serve_forever()


if __name__ == "__main__":
    main()
