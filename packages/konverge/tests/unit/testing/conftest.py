"""Fake programs for etcd, kube-apiserver and the rest: small scripts, to test the launcher without the real ones."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Listens where the flags of etcd, kube-apiserver or kube-controller-manager say, with the certificate that they name,
# and says yes to everything.
SERVER = """\
#!{python} -IS
import http.server, json, socketserver, ssl, sys

class Yes(http.server.BaseHTTPRequestHandler):
    def do_GET(self, code=200):
        body = json.dumps({{"metadata": {{"name": "test-fresh"}}}}).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.do_GET(201)

    def do_DELETE(self):
        self.do_GET()

    def log_message(self, *arguments):
        pass

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

flags = dict(argument.lstrip("-").partition("=")[::2] for argument in sys.argv[1:])
port = int(flags.get("secure-port") or flags["listen-client-urls"].rpartition(":")[2])
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
cert, key = ("tls-cert-file", "tls-private-key-file") if "tls-cert-file" in flags else ("cert-file", "key-file")
tls.load_cert_chain(flags[cert], flags[key])
try:
    server = Server(("127.0.0.1", port), Yes)
except OSError:
    sys.exit("bind: address already in use")
server.socket = tls.wrap_socket(server.socket, server_side=True)
print("serving", *sys.argv, flush=True)
server.serve_forever()
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Create a directory with a fake of each program; kubectl prints its input."""
    directory = tmp_path / "programs"
    for name in ("etcd", "kube-apiserver", "kube-controller-manager"):
        write_program(directory / name, SERVER.format(python=sys.executable))
    write_program(directory / "kubectl", '#!/bin/sh\necho "kubectl $*"\ncat\n')
    return directory


@pytest.fixture
def write() -> Callable[[Path, str], Path]:
    """Write an executable script."""
    return write_program


@pytest.fixture
def is_gone() -> Callable[[int], bool]:
    """Report whether a process ends within some seconds, without polling."""
    return wait_for_end


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def wait_for_end(pid: int, seconds: float = 10.0) -> bool:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], seconds)[0])
    finally:
        os.close(process)
