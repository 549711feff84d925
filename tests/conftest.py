"""What holds for all tests."""

import gc
import signal
from collections.abc import Iterator

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was imported out of all searches for garbage: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt this process and those it starts, as in the foreground of a shell.

    Programs in the background of a shell inherit that it is ignored.
    """
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, inherited)
