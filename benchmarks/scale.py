"""`make bench-scale`: large graphs on one machine, every fit in a process of its own.

Two graphs, a square grid and the five nearest neighbours of points in the plane; fifty
observations in the plane per sample, at most 64 atoms. "alike": all nodes have the same
reference law and a part of them changes; "own": every node has its own location and scale.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import graphratio as gr
from page import between

RESULTS = Path(__file__).with_name("scale.json")
PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"
N_OBSERVATIONS = 50
MAX_ATOMS = 64
SIZES = (12_500, 25_000, 50_000, 100_000)
# Short fits vary most, so up to this size three are made and the one in the middle counts.
REPEATED = 25_000
# Growth from the smallest to the largest graph from which on it is measured again, with three
# fits at either size: a single long fit may have met with a busy machine.
MEASURED_AGAIN = 9.0


def make_graph(kind: str, n_nodes: int) -> gr.Graph:
    if kind == "plane":
        return gr.Graph.from_coordinates(np.random.default_rng(1).random((n_nodes, 2)), k=5)
    side = round(n_nodes**0.5)
    index = np.arange(side * side).reshape(side, side)
    across = np.column_stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    down = np.column_stack([index[:-1].ravel(), index[1:].ravel()])
    return gr.Graph.from_edges(np.concatenate([across, down]), nodes=range(side * side))


def make_samples(n_nodes: int, law: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    shape = (n_nodes, N_OBSERVATIONS, 2)
    reference, target = rng.standard_normal(shape), rng.standard_normal(shape)
    target += (np.arange(n_nodes) < n_nodes // 4)[:, np.newaxis, np.newaxis]
    if law == "own":
        scale = np.exp(0.5 * rng.standard_normal((n_nodes, 1, 1)))
        location = 2 * rng.standard_normal((n_nodes, 1, 2))
        for sample in (reference, target):
            sample *= scale
            sample += location
    return reference, target


def run(job: dict) -> dict:
    """One fit; seconds of wall and processor time from raw arrays to the fitted model."""
    graph = make_graph(job["graph"], job["n_nodes"])
    reference, target = make_samples(graph.n_nodes, job["law"])
    params = {"max_atoms": MAX_ATOMS, "random_state": 0, "max_memory": job.get("max_memory")}
    if "selection_nodes" in job:
        params["selection_nodes"] = job["selection_nodes"]
    else:
        params["bandwidth"] = 1.5
        # The paper's lambda and gamma: lambda times the mean degree is the coupling, or with
        # `per_node` the coupling over the number of nodes.
        penalty = job["coupling"] / graph.mean_degree
        if not job.get("per_node"):
            penalty *= graph.n_nodes
        params["graph_penalty"] = penalty
        params["ridge"] = job["gamma"] * penalty
    often = graph.n_nodes <= REPEATED or job.get("again")
    repeats = 3 if often and "selection_nodes" not in job else 1
    times = []
    for _ in range(repeats):
        began, used = time.perf_counter(), time.process_time()
        model = gr.GRULSIF(**params).fit((reference, target), graph)
        times.append((time.perf_counter() - began, time.process_time() - used))
    seconds, processor_seconds = sorted(times)[repeats // 2]
    return job | {
        "n_nodes": graph.n_nodes,
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        "gibibytes": _peak(),
        "n_iter": model.solution_.n_iter,
        "residual": model.solution_.residual,
        "n_components": model.n_components_,
        "method": model.solution_.method,
        "preconditioner": model.solution_.preconditioner,
    }


def run_after(job: dict) -> dict:
    """What can be asked after a fit, on normal samples that shift in a disc of the plane."""
    rng = np.random.default_rng(0)
    points = rng.random((job["n_nodes"], 2))
    shift = np.linalg.norm(points - 0.5, axis=1) < 0.2
    reference, target = rng.normal(size=(2, job["n_nodes"], N_OBSERVATIONS, 1))
    target += shift[:, np.newaxis, np.newaxis]
    data = (reference, target)
    graph = gr.Graph.from_coordinates(points, k=5)
    other = gr.Graph.from_coordinates(rng.random((job["n_nodes"], 2)), k=5)
    plain = gr.GRULSIF(prior_ratio=1.0, random_state=0)
    model = plain.fit(data, graph)
    options = {"random_state": 0}
    asked = {
        "sizes_with_borrowed": lambda: model.sizes_with_borrowed(),
        "borrowed, one node": lambda: model.borrowed(17),
        "expected_ratio_interval, one node, 50 points": lambda: gr.expected_ratio_interval(
            data, graph, model, x=np.linspace(-2, 3, 50), node=17
        ),
        "divergence_bounds": lambda: gr.divergence_bounds(data, graph, model, **options),
        "compare_graphs, two graphs": lambda: gr.compare_graphs(
            data, {"near": graph, "elsewhere": other}, gr.GRULSIF(prior_ratio=1.0), **options
        ),
    }
    seconds = {}
    for name, work in asked.items():
        began = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - began
    return job | {"after": seconds, "gibibytes": _peak()}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def jobs(largest: int) -> list[dict]:
    sizes = [size for size in SIZES if size <= largest]
    todo: list[dict] = []
    for kind in ("grid", "plane"):
        cases = [
            {"law": "alike", "coupling": lam, "gamma": gam}
            for lam in (1e-3, 10.0)
            for gam in (1e-5, 1.0)
        ]
        cases += [
            {"law": "own", "coupling": 0.01, "gamma": gam, "per_node": True} for gam in (1e-5, 1.0)
        ]
        # Sizes innermost: what is compared runs one after the other, as the machine then is.
        todo += [{"graph": kind, "n_nodes": size} | case for case in cases for size in sizes]
        selection = {"graph": kind, "n_nodes": 10_000, "law": "alike"}
        todo += [selection | {"selection_nodes": nodes} for nodes in (None, "all")]
    return [*todo, {"graph": "plane", "n_nodes": 10_000, "after": None}]


def jobs_again(rows: list[dict]) -> list[dict]:
    """The smallest and the largest graph of every case that grew much."""
    names = ("graph", "n_nodes", "law", "coupling", "gamma", "per_node")
    cases: dict[tuple, list[dict]] = {}
    for row in rows:
        if "coupling" in row:
            cases.setdefault(_kind(row), []).append(row)
    return [
        {name: row[name] for name in names if name in row} | {"again": True}
        for fits in cases.values()
        if fits[-1]["seconds"] > MEASURED_AGAIN * fits[0]["seconds"]
        for row in (fits[0], fits[-1])
    ]


def show(row: dict) -> str:
    if "after" in row:
        return "\n".join(f"{name}: {seconds:.1f} s" for name, seconds in row["after"].items())
    if "selection_nodes" in row:
        what = f"selection on {row['selection_nodes'] or 'patches'}"
    else:
        name = "lambda N d" if row.get("per_node") else "lambda d"
        what = f"{name} = {row['coupling']:g}, gamma = {row['gamma']:g}"
    return (
        f"{row['graph']:>6} {row['n_nodes']:7d} {row['law']:>6}  {what:32} "
        f"{row['seconds']:7.1f} s {row['processor_seconds']:7.1f} s cpu {row['gibibytes']:5.2f} GiB"
        f" {row['n_iter']:4d} iterations  residual {row['residual']:.1e}  {row['method']}"
    )


def tables(rows: list[dict]) -> str:
    """What was measured, in Markdown: fits, and selections below them."""
    lines = _fits([row for row in rows if "coupling" in row and "again" not in row])
    again = [row for row in rows if "again" in row]
    if again:
        lines += ["", f"Cases that grew more than {MEASURED_AGAIN:g} times, again, with three fits"]
        lines[-1] += " at either size:"
        lines += ["", *_fits(again)]
    lines += ["", "Selection of all three hyperparameters with the final fit, laws alike:", ""]
    lines += [_line(["graph", "nodes", "selected on", "time", "peak memory"]), "|---" * 5 + "|"]
    for row in rows:
        if "selection_nodes" in row:
            on = "all nodes" if row["selection_nodes"] else "patches of 2,000 nodes"
            cells = [row["graph"], f"{row['n_nodes']:,}", on, f"{row['seconds']:.1f} s"]
            lines.append(_line([*cells, f"{row['gibibytes']:.1f} GiB"]))
    for row in rows:
        if "after" in row:
            lines += ["", f"After a fit to {row['n_nodes']:,} nodes in the plane with one feature:"]
            lines += ["", _line(["question", "time"]), "|---" * 2 + "|"]
            lines += [_line([name, f"{s:.1f} s"]) for name, s in row["after"].items()]
    return "\n".join(lines) + "\n"


def _fits(fits: list[dict]) -> list[str]:
    first = {_kind(row): row["seconds"] for row in reversed(fits)}
    head = "graph|nodes|laws|lambda d|gamma|time|over the smallest|processor time|peak memory"
    lines = [_line(f"{head}|iterations".split("|")), "|---" * 10 + "|"]
    for row in fits:
        cells = [row["graph"], f"{row['n_nodes']:,}", row["law"]]
        cells += [f"{row['coupling']:g}{' / N' if row.get('per_node') else ''}"]
        cells += [f"{row['gamma']:g}", f"{row['seconds']:.1f} s"]
        cells += [f"{row['seconds'] / first[_kind(row)]:.1f} times"]
        cells += [f"{row['processor_seconds']:.0f} s", f"{row['gibibytes']:.1f} GiB"]
        lines.append(_line([*cells, str(row["n_iter"])]))
    return lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _kind(row: dict) -> tuple:
    return row["graph"], row["law"], row["coupling"], row["gamma"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest number of nodes")
    parser.add_argument("--graph", choices=("grid", "plane"), help="fits on this graph only")
    parser.add_argument("--first", type=int, help="so many of the jobs")
    parser.add_argument(
        "--again", action="store_true", help="only what is measured again, of what is stored"
    )
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        job = json.loads(options.job)
        print(json.dumps(run_after(job) if "after" in job else run(job)))
        return
    stored = json.loads(RESULTS.read_text()) if options.again else []
    rows = [row for row in stored if "again" not in row]
    todo = [job for job in jobs(options.largest) if options.graph in (None, job["graph"])]
    for job in [] if options.again else todo[: options.first]:
        _measure(job, rows)
    for job in jobs_again(rows):
        _measure(job, rows)
    between(PAGE, "scale", tables(rows))


def _measure(job: dict, rows: list[dict]) -> None:
    """In a process of its own; the row is added, printed and stored."""
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows.append(json.loads(done.stdout.splitlines()[-1]))
    print(show(rows[-1]), flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
