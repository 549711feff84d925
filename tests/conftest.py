"""What holds for all tests."""

import gc

import pytest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what was imported out of all searches for garbage: it stays until the end."""
    gc.collect()
    gc.freeze()
