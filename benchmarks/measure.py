"""Timing side by side, ratios with intervals, exponents, and what the machine is."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_info

Work = Callable[[], Any]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Comparison:
    """The library and a peer on the same work, run in turn in one process.

    Attributes
    ----------
    work : str
        What was done, for people; together with `peer` the name of the comparison.
    peer : str
    ours, theirs : float
        Median seconds of processor time, unless said otherwise.
    ratio : float
        theirs / ours, geometric mean over rounds: above 1 the library is faster.
    low, high : float
        95 % interval of the ratio.
    rounds : int
    accuracy : str
        What the numbers below measure.
    our_accuracy, their_accuracy : float
    """

    work: str
    peer: str
    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    rounds: int
    accuracy: str = ""
    our_accuracy: float = float("nan")
    their_accuracy: float = float("nan")


@dataclass(frozen=True)
class Growth:
    """Seconds against a size, and the exponent of the power law through them.

    Attributes
    ----------
    what : str
    sizes, seconds : list
    exponent, low, high : float
        Of the least-squares line through the logarithms, with its 95 % interval.
    """

    what: str
    sizes: list[float]
    seconds: list[float]
    exponent: float
    low: float
    high: float


@dataclass(frozen=True)
class Cost:
    """One number with its unit.

    Attributes
    ----------
    what : str
    value, low, high : float
        Median, and smallest and largest of the rounds.
    unit : str
    """

    what: str
    value: float
    low: float
    high: float
    unit: str


@dataclass
class Piece:
    """Everything that one part of the benchmarks found."""

    title: str
    remark: str = ""
    clock: str = "processor time"
    comparisons: list[Comparison] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values; a number that is not there is null."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") if np.isfinite(value) else None
    return value


def timed(work: Work, clock: Clock = time.process_time) -> tuple[float, Any]:
    """Seconds of one run, without the collector of garbage, and what it returned.

    Processor time: with one thread it is the wall time of a machine that does nothing else.
    """
    gc.collect()
    gc.disable()
    try:
        began = clock()
        result = work()
        return clock() - began, result
    finally:
        gc.enable()


def side_by_side(
    contenders: Mapping[str, Work], rounds: int, clock: Clock = time.process_time
) -> dict[str, np.ndarray]:
    """Seconds of every contender in every round, shape (rounds,).

    Within a round all run one after the other, so that what disturbs the machine for longer
    disturbs all of them; the order is reversed from round to round.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds):
        names = list(contenders)[:: -1 if turn % 2 else 1]
        for name in names:
            seconds[name].append(timed(contenders[name], clock)[0])
    return {name: np.array(values) for name, values in seconds.items()}


def ratio_interval(theirs: np.ndarray, ours: np.ndarray) -> tuple[float, float, float]:
    """Geometric mean of the ratios of rounds, and its 95 % interval by the t law of their logs."""
    logs = np.log(theirs / ours)
    middle = float(logs.mean())
    if len(logs) < 2:
        return float(np.exp(middle)), float("nan"), float("nan")
    half = float(stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs)))
    return float(np.exp(middle)), float(np.exp(middle - half)), float(np.exp(middle + half))


def compare(
    work: str,
    peer: str,
    ours: Work,
    theirs: Work,
    rounds: int,
    accuracy: str = "",
    accuracies: tuple[float, float] = (float("nan"), float("nan")),
    clock: Clock = time.process_time,
) -> Comparison:
    """Time both in turn; the first run of each, which fills caches, must be behind them."""
    seconds = side_by_side({"ours": ours, "theirs": theirs}, rounds, clock)
    ratio, low, high = ratio_interval(seconds["theirs"], seconds["ours"])
    medians = (float(np.median(seconds["ours"])), float(np.median(seconds["theirs"])))
    return Comparison(work, peer, *medians, ratio, low, high, rounds, accuracy, *accuracies)


def growth(what: str, sizes: Sequence[float], work: Sequence[Work], rounds: int = 2) -> Growth:
    """Best time at every size, and the exponent; a round goes through all sizes."""
    each = side_by_side({str(i): run for i, run in enumerate(work)}, rounds)
    seconds = [float(times.min()) for times in each.values()]
    line = stats.linregress(np.log(sizes), np.log(seconds))
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * line.stderr)
    slope = float(line.slope)
    return Growth(what, list(map(float, sizes)), seconds, slope, slope - half, slope + half)


def cost(what: str, work: Work, rounds: int, unit: str = "s", scale: float = 1.0) -> Cost:
    """Seconds of a piece of work times `scale`, over some rounds."""
    values = [timed(work)[0] * scale for _ in range(rounds)]
    return Cost(what, float(np.median(values)), min(values), max(values), unit)


def product_speed() -> float:
    """Double-precision matrix products in GFlop/s."""
    a = np.random.default_rng(0).normal(size=(1024, 1024))
    return 2 * 1024**3 / min(timed(lambda: a @ a)[0] for _ in range(5)) / 1e9


def machine() -> dict[str, Any]:
    """What was measured on: processor, speed, and versions; no names of hosts or folders."""
    libraries = {info["internal_api"]: info["version"] for info in threadpool_info()}
    packages = ("numpy", "scipy", "scikit-learn", "densratio", "ruptures", "pandas")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "products_gflops": round(product_speed(), 1),
        "threads": os.environ.get("OMP_NUM_THREADS", "not set"),
        "linear_algebra": libraries,
        "packages": {name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            names = [line.split(":")[1].strip() for line in stream if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"
