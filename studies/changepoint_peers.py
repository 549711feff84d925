"""ruptures and skchange on the single series of the study of change-points.

Both need a penalty. It is chosen as the detector chooses its threshold: the smallest that at most
5 % of 99 shuffled copies of the series exceed. Appends to studies/changepoints-peers.csv what it
lacks.
Run with `python studies/changepoint_peers.py`; both packages are in the extra `bench`.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from changepoint_draws import SINGLE, found_exactly, single_series

HERE = Path(__file__).parent
RESULTS = HERE / "changepoints-peers.csv"
COLUMNS = ["case", "seed", "ruptures", "skchange"]
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


def main(first: int = 1000, n_draws: int = 400) -> None:
    """Run what the results lack, seed by seed."""
    warnings.simplefilter("ignore")
    done = set()
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            done = {(row["case"], row["seed"]) for row in csv.DictReader(file)}
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=COLUMNS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for seed in range(first, first + n_draws):
            for case in ("none", *SINGLE):
                if (case, str(seed)) in done:
                    continue
                x = single_series(case, seed)
                row = {"case": case, "seed": seed}
                row |= {
                    "ruptures": int(found_exactly(case, by_ruptures(x, seed))),
                    "skchange": int(found_exactly(case, by_skchange(x, seed))),
                }
                writer.writerow(row)
                file.flush()
            print(f"\rseed {seed}", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
