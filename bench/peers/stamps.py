"""When each reconcile began: a line of name, generation and wall clock in the file of SHOP_STAMPS."""

import os
import time

__all__ = ["stamp"]

_file = os.open(os.environ["SHOP_STAMPS"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)


def stamp(name: str, generation: int | None) -> None:
    """Note that a reconcile begins now."""
    os.write(_file, f"{name} {generation} {time.time():.6f}\n".encode())
