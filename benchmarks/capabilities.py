"""`make bench-scale`: what can be asked of large graphs, every question in a process of its own.

The data of `scale`: points in the plane joined to their five nearest, fifty observations per sample
with two features, at most 64 atoms. One thread; seconds are processor time, so that other work on
the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import graphratio as gr
from page import between
from scale import MAX_ATOMS, PAGE, make_graph, make_samples

RESULTS = Path(__file__).with_name("capabilities.json")
QUESTIONS = {
    "fit": "`GraphRatio().fit`, with selection",
    "fit, own laws": "the same, every node has its own location and scale",
    "bounds": "`divergence_bounds` with `GraphRatio`",
    "report": "`write_report`",
    "command": "`graphratio report`, from a CSV file",
    "save and load": "`model.save` and `gr.load`",
    "compare": "`compare_graphs` with `GraphRatio`, one graph",
    "test": "`two_sample_test`",
}
SIZES = {
    "fit": (12_500, 25_000, 50_000, 100_000),
    "fit, own laws": (12_500, 100_000),
    "bounds": (20_000, 100_000),
    "report": (20_000,),
    "command": (20_000,),
    "save and load": (25_000, 100_000),
    "compare": (2_500, 20_000, 100_000),
    "test": (1_000, 2_500, 20_000, 100_000),
}


def estimator() -> gr.GraphRatio:
    return gr.GraphRatio(max_atoms=MAX_ATOMS, random_state=0)


def run(job: dict) -> dict:
    """Ask one question; seconds of processor time, peak memory, and the size of a file."""
    question = job["question"]
    graph = make_graph("plane", job["n_nodes"])
    law = "own" if question == "fit, own laws" else "alike"
    samples = gr.NodeSamples.from_arrays(*make_samples(job["n_nodes"], law))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        work = _work(question, samples, graph, path)
        began = _seconds()
        work()
        found = job | {"processor_seconds": _seconds() - began, "gibibytes": _peak()}
        if path.is_dir():
            path = path / "report.html"
        return found | ({"megabytes": path.stat().st_size / 1e6} if path.exists() else {})


def _work(question: str, samples: gr.NodeSamples, graph: gr.Graph, path: Path) -> Callable:
    """What to measure, after what comes before it was done."""
    if question.startswith("fit"):
        return lambda: estimator().fit(samples, graph)
    if question == "bounds":
        return lambda: gr.divergence_bounds(samples, graph, estimator(), random_state=0)
    if question == "test":
        return lambda: gr.two_sample_test(samples, graph, random_state=0)
    if question == "compare":
        return lambda: gr.compare_graphs(samples, graph, estimator(), random_state=0)
    if question == "command":
        return _command(samples, path)
    model = estimator().fit(samples, graph)
    if question == "report":
        from graphratio.report import write_report

        return lambda: write_report(path, model, samples)
    return lambda: (model.save(path), gr.load(path))


def _command(samples: gr.NodeSamples, path: Path) -> Callable:
    """The command line on a table with the places of the nodes."""
    import pandas as pd

    places = np.random.default_rng(1).random((samples.n_nodes, 2))
    node = samples.node_index
    table = pd.DataFrame(samples.values, columns=["f0", "f1"])
    table["node"], table["period"] = node, np.where(samples.is_target, "after", "before")
    table["x"], table["y"] = places[node].T
    data = path.with_name("table.csv")
    table.to_csv(data, index=False)
    command = f"report {data} --node node --sample period --reference before --target after "
    command += f"--features f0,f1 --coordinates x,y --output {path} --quiet"
    return lambda: subprocess.run(
        [sys.executable, "-m", "graphratio", *command.split()], check=True, capture_output=True
    )


def _seconds() -> float:
    """Processor time of this process and of those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _peak() -> float:
    used = [resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN]
    return max(resource.getrusage(who).ru_maxrss for who in used) / 2**20


def table(rows: list[dict]) -> str:
    """What was measured, in Markdown."""
    lines = [
        "| question | nodes | processor time | per node | peak memory | file |",
        "|---" * 6 + "|",
    ]
    for question, words in QUESTIONS.items():
        for row in rows:
            if row["question"] != question:
                continue
            seconds = row["processor_seconds"]
            size = f"{row['megabytes']:.1f} MB" if "megabytes" in row else ""
            cells = [words, f"{row['n_nodes']:,}", f"{seconds:.0f} s"]
            cells += [
                f"{1e3 * seconds / row['n_nodes']:.1f} ms",
                f"{row['gibibytes']:.1f} GiB",
                size,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=QUESTIONS, help="ask this question again")
    parser.add_argument("--anew", action="store_true", help="forget what is stored")
    parser.add_argument("--largest", type=int, default=100_000, help="largest number of nodes")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(run(json.loads(options.job))))
        return
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() and not options.anew else []
    rows = [row for row in rows if row["question"] != options.only]
    done_before = {(row["question"], row["n_nodes"]) for row in rows}
    asked = [options.only] if options.only else list(QUESTIONS)
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for question in asked:
        for size in SIZES[question]:
            if size > options.largest or (question, size) in done_before:
                continue
            job = json.dumps({"question": question, "n_nodes": size})
            done = subprocess.run(
                [sys.executable, __file__, "--job", job],
                check=True, capture_output=True, text=True, env=os.environ | single,
            )  # fmt: skip
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    between(PAGE, "capabilities", table(rows))


if __name__ == "__main__":
    main()
