"""Memory that a computation frees stays with it."""

import os
import platform
import subprocess
import sys

import pytest

from graphratio._utils import allocator as _allocator
from graphratio._utils.allocator import SETTINGS, keep_freed_memory, kept_memory

# Pages that have to be fetched for twenty arrays of 2 MB, one after the other.
COUNT = """
import resource
import numpy as np
from graphratio._utils.allocator import keep_freed_memory

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


# Pages for twenty arrays of 64 MB, beyond what glibc keeps by itself.
LARGE = """
import resource
import numpy as np
from graphratio._utils.allocator import kept_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.empty(8_000_000)[::512] = 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * resource.getpagesize()

outside = faults()
before = resident()
with kept_memory(2**30):
    with kept_memory(10):
        faults()
    inside = faults()
print(outside, inside, faults(), resident() - before)
"""


def count_large(**environment):
    # Dask sets a variable of its own in the processes that it starts and that start it.
    kept = {name: text for name, text in os.environ.items() if name not in SETTINGS}
    done = subprocess.run(
        [sys.executable, "-c", LARGE],
        env={**kept, "NUMPY_MADVISE_HUGEPAGE": "0", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in done.stdout.split()]


on_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc only")


@on_glibc
def test_a_computation_keeps_its_memory_and_gives_it_back():
    outside, inside, again, grown = count_large()
    assert outside > 10 * 15_000
    assert inside < 1_000
    assert again > 10 * 15_000
    assert grown < 2**24


@on_glibc
@pytest.mark.parametrize(
    "setting", [{"MALLOC_MMAP_MAX_": "65536"}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=65536"}]
)
def test_an_allocator_that_somebody_has_set_is_left_alone(setting):
    _, inside, _, _ = count_large(**setting)
    assert inside > 10 * 15_000


def test_contexts_may_overlap(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    first, second = kept_memory(1), kept_memory(1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert _allocator._inside == 1
    second.__exit__(None, None, None)
    assert _allocator._inside == 0
