"""Start times of reconciles: a line with name, generation and wall clock in the file SHOP_STAMPS."""

import os
import time

__all__ = ["stamp"]

_file = os.open(os.environ["SHOP_STAMPS"], os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)


def stamp(name: str, generation: int | None) -> None:
    """Record the start of a reconcile."""
    os.write(_file, f"{name} {generation} {time.time():.6f}\n".encode())
