"""Memory that a worker frees stays with it."""

import os
import platform
import subprocess
import sys

import pytest

from graphratio.engine.allocator import keep_freed_memory

# Pages that have to be fetched for twenty arrays of 2 MB, one after the other.
COUNT = """
import resource
import numpy as np
from graphratio.engine.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(250_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(), keep_freed_memory(), faults())
"""


@pytest.mark.parametrize("value", [None, "", "many", str(2**27)])
def test_other_settings_are_left_alone(monkeypatch, value):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    if value is not None:
        monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", value)
    assert keep_freed_memory() is False


def test_arrays_use_the_memory_of_those_before_them():
    """As Dask starts its workers."""
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True
    )
    before, changed, after = done.stdout.split()
    if platform.libc_ver()[0] != "glibc":
        assert changed == "False"
        return
    assert changed == "True"
    pages = 2_000_000 // os.sysconf("SC_PAGE_SIZE")
    assert int(before) > 10 * pages
    assert int(after) < 3 * pages
