"""ruptures and skchange on the series and panels of the study of change-points.

Both need a penalty. It is chosen as the detector chooses its threshold: the smallest that at most
5 % of 99 shuffled copies of the series exceed. Panels are searched by skchange's ESAC scores, which
adapt to the number of series that change; they have no graph. Their penalty comes from skchange's
own calibration on 99 shuffled copies of a panel without change, once for all panels.

Run with `python studies/changepoint_peers.py series` or `panels`; appends to
studies/changepoints-peers.csv and studies/changepoints-esac.csv what they lack. Both packages are
in the extra `bench`.
"""

from __future__ import annotations

import csv
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from changepoint_draws import PANEL_CHANGE, SINGLE, found_exactly, grid_panel, single_series

HERE = Path(__file__).parent
FIRST_SEED = 1000
PANELS = ("corner +0.35", "corner +0.2", "scattered +0.5", "none")
N_COPIES, LEVEL, MIN_SIZE = 99, 0.05, 10


def by_ruptures(x: np.ndarray, seed: int) -> list[int]:
    """Change-points by kernel segmentation with a calibrated penalty."""
    import ruptures

    rng = np.random.default_rng(seed)
    gains = []
    for _ in range(N_COPIES):
        search = ruptures.KernelCPD(kernel="rbf", min_size=MIN_SIZE).fit(rng.permutation(x))
        split = search.predict(n_bkps=1)
        gains.append(search.cost.error(0, len(x)) - search.cost.sum_of_costs(split))
    penalty = np.quantile(gains, 1 - LEVEL, method="higher")
    search = ruptures.KernelCPD(kernel="rbf", min_size=MIN_SIZE).fit(x)
    return [int(step) for step in search.predict(pen=penalty)[:-1]]


def by_skchange(x: np.ndarray, seed: int) -> list[int]:
    """Changes of the mean by seeded binary segmentation with a calibrated penalty."""
    from skchange.detectors import SeededBinarySegmentation
    from skchange.interval_scorers import CUSUM

    rng = np.random.default_rng(seed)
    largest = []
    for _ in range(N_COPIES):
        copy = rng.permutation(x)
        # Scores are returned less the penalty.
        found = SeededBinarySegmentation(CUSUM(), penalty=1.0).fit(copy).predict_all(copy)
        largest.append(float(np.max(found["interval_max_scores"])) + 1.0)
    penalty = float(np.quantile(largest, 1 - LEVEL, method="higher"))
    search = SeededBinarySegmentation(CUSUM(), penalty=penalty).fit(x)
    return [int(step) for step in search.predict(x)]


def esac_search(scale: float = 1.0) -> Any:
    """Search of skchange for changes of the mean in some of many series."""
    from skchange.detectors import SeededBinarySegmentation
    from skchange.interval_scorers import ESACScore

    return SeededBinarySegmentation(ESACScore(penalty_scale=scale))


def esac_scale(path: Path) -> float:
    """The calibrated penalty: that of stored rows, or a new one."""
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                return float(row["scale"])
    from skchange.tuning import calibrate_penalty_scale_fwer

    quiet = grid_panel("corner +0", FIRST_SEED - 1)[0]
    return float(
        calibrate_penalty_scale_fwer(
            esac_search(),
            *quiet.shape,
            X=quiet,
            level=LEVEL,
            n_simulations=N_COPIES,
            random_state=0,
        )
    )


def of_series(case: str, seed: int) -> dict[str, Any]:
    """Whether each peer finds exactly the true changes of a series."""
    x = single_series(case, seed)
    return {
        "ruptures": int(found_exactly(case, by_ruptures(x, seed))),
        "skchange": int(found_exactly(case, by_skchange(x, seed))),
    }


def of_panel(case: str, seed: int, scale: float) -> dict[str, Any]:
    """The change-point of a panel that is nearest to the true one."""
    x = grid_panel("corner +0" if case == "none" else case, seed)[0]
    found = np.asarray(esac_search(scale).fit(x).predict(x))
    error = int(found[np.argmin(np.abs(found - PANEL_CHANGE))]) - PANEL_CHANGE if len(found) else ""
    return {"scale": scale, "n_found": len(found), "error": error}


def fill(
    path: Path,
    columns: list[str],
    cases: Sequence[str],
    n_draws: int,
    one: Callable[[str, int], dict[str, Any]],
) -> None:
    """Run what the results lack, seed by seed."""
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {(row["case"], row["seed"]) for row in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=["case", "seed", *columns], lineterminator="\n")
        if not done:
            writer.writeheader()
        for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
            for case in cases:
                if (case, str(seed)) not in done:
                    writer.writerow({"case": case, "seed": seed} | one(case, seed))
                    file.flush()
            print(f"\rseed {seed}", end="", flush=True)
    print()


def main(parts: Sequence[str]) -> None:
    """Run some parts."""
    warnings.simplefilter("ignore")
    if "series" in parts:
        columns = ["ruptures", "skchange"]
        fill(HERE / "changepoints-peers.csv", columns, ("none", *SINGLE), 400, of_series)
    if "panels" in parts:
        path = HERE / "changepoints-esac.csv"
        scale = esac_scale(path)
        fill(
            path,
            ["scale", "n_found", "error"],
            PANELS,
            100,
            lambda case, seed: of_panel(case, seed, scale),
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ("series", "panels"))
