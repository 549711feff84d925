"""The thread of a fit on a worker: in order, shared, and no obstacle to the end of the process."""

import asyncio
import gc
import subprocess
import sys
import threading
import time

from graphratio.distributed.actors import PartitionHost

HANGING = """
import asyncio, time
from graphratio.distributed.actors import PartitionHost

async def impatient():
    await asyncio.wait_for(PartitionHost("fit")._work(time.sleep, 600), 0.2)

try:
    asyncio.run(impatient())
except TimeoutError:
    print("given up")
"""


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "graphratio"]


def test_a_process_ends_while_a_loader_hangs():
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"given up\n"), done.stderr


def test_hosts_of_a_fit_share_a_thread_that_ends_with_them():
    before = len(threads())

    async def work():
        hosts = [PartitionHost("one"), PartitionHost("one"), PartitionHost("two")]
        answers = await asyncio.gather(*(host._work(threading.get_ident) for host in hosts))
        assert len(threads()) == before + 2
        return [ident for _, ident in answers]

    first, second, other = asyncio.run(work())
    assert first == second != other
    gc.collect()
    deadline = time.monotonic() + 10
    while len(threads()) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(threads()) == before


def test_what_was_cancelled_before_it_began_is_not_done():
    async def work():
        host, done = PartitionHost("fit"), []
        busy = asyncio.ensure_future(host._work(time.sleep, 0.2))
        await asyncio.sleep(0.05)
        waiting = asyncio.ensure_future(host._work(done.append, 1))
        await asyncio.sleep(0.05)
        waiting.cancel()
        assert await busy == ("done", None)
        assert await host._work(len, done) == ("done", 0)

    asyncio.run(work())
