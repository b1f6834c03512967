"""No unit test of the parts that run controllers may leave a mistake of konverge in the log.

A controller logs an error of a reconcile, of an observer or of an event, and continues. So a mistake in konverge itself
would be no more than a line in the log of a test that passes. Other parts, such as webhooks, log a TypeError about the
code of an author on purpose.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator

import pytest

PARTS = ("cache", "controller", "manager", "reconcile")
MISTAKES = (TypeError, AttributeError, NameError, LookupError, AssertionError, ArithmeticError)


class Mistakes(logging.Handler):
    """Records the errors in the log that the code of konverge made, not that of a test."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, MISTAKES) and is_made_by_konverge(error):
            self.found.append(f"{record.getMessage()}: {error!r}")


def is_made_by_konverge(error: BaseException) -> bool:
    """Report whether the last code before the error, libraries aside, is that of konverge."""
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [name for name in files if "/src/konverge/" in name or "/tests/" in name or "/support/" in name]
    return bool(ours) and "/src/konverge/" in ours[-1]


@pytest.fixture(autouse=True)
def no_mistakes_in_the_log(request: pytest.FixtureRequest) -> Iterator[None]:
    mistakes, logger = Mistakes(), logging.getLogger("konverge")
    logger.addHandler(mistakes)
    yield
    logger.removeHandler(mistakes)
    if request.path.parent.name in PARTS:
        assert mistakes.found == []
