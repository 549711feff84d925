"""Signs of life of Dask workers.

Workers send heartbeats to their scheduler, from another thread than the one that computes. A
worker that computes for long has them, a frozen one has not: that tells slow from lost, on a
busy machine too. Time-stamps are only compared with each other, since clocks of machines differ;
how long a worker has been silent is measured by the clock of this process.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

# How often the scheduler is asked while an answer is outstanding, in seconds and as a share of
# the time-out.
LOOK_EVERY = 1.0
LOOK_SHARE = 0.1


class LifeSigns:
    """What the scheduler knows of its workers, and since when each has been silent.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds of silence after which a worker counts as lost.

    Attributes
    ----------
    every : float
        Seconds between looks.
    stamps : dict of str to float
        Last heartbeat of every worker that the scheduler knows, by address.
    """

    def __init__(self, client: Any, timeout: float) -> None:
        self.client, self.timeout = client, timeout
        self.every = min(LOOK_EVERY, LOOK_SHARE * timeout)
        self.stamps: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        self._looked = False

    @property
    def cut_off(self) -> bool:
        """Whether the client has given up on its scheduler, which it does for good."""
        return self.client.scheduler is None

    async def look(self) -> None:
        """Ask the scheduler; if it does not answer, nobody has given a sign."""
        if self.cut_off:
            return
        asking = self.client.scheduler.identity(n_workers=-1)
        try:
            about = await asyncio.wait_for(asking, 0.25 * self.timeout)
        except OSError:
            return
        stamps = {address: worker["last_seen"] for address, worker in about["workers"].items()}
        now = time.monotonic()
        for address, stamp in stamps.items():
            if stamp != self.stamps.get(address):
                self._heard[address] = now
        self.stamps, self._looked = stamps, True

    def trouble(self, address: str, since: float) -> OSError | None:
        """What is wrong with a worker that something has been expected of since then."""
        if self._looked and address not in self.stamps:
            return ConnectionError("the scheduler has lost the worker")
        silent = time.monotonic() - max(self._heard.get(address, since), since)
        # Two looks early, so that a loss is noticed before the time-out and not after it.
        if silent > self.timeout - 2 * self.every:
            return TimeoutError(f"no sign of life for {silent:.1f} s")
        return None
