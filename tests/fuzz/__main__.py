"""The full run: many inputs over several processes; stopped and started again, it goes on.

    python -m tests.fuzz --inputs 20000 --workers 2 --folder graphratio-fuzz

Every finished piece is a file in the folder; the summary is printed and written as JSON. One
input by itself, with what it did: python -m tests.fuzz --seed 4711
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from graphratio._files import appearing
from graphratio._version import __version__
from tests.fuzz.cases import case
from tests.fuzz.judge import LIMIT, judge

PIECE = 250
# Bytes of address space of a worker: an input that makes it ask for more is a fault.
MEMORY = 6 * 2**30


def run_piece(first: int, count: int) -> dict[str, Any]:
    """Judge inputs first .. first + count - 1."""
    ends: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    faults, slowest = [], (0.0, -1)
    with tempfile.TemporaryDirectory(prefix="graphratio-fuzz-") as place:
        for seed in range(first, first + count):
            made = case(seed)
            verdict = judge(made, Path(place))
            ends[f"{made.command} {verdict.code}"] += 1
            slowest = max(slowest, (verdict.seconds, seed))
            if verdict.message:
                messages[_kind(verdict.message)] += 1
            faults += [{"seed": seed, "fault": fault} for fault in verdict.faults]
    return {
        "first": first,
        "count": count,
        "ends": dict(ends),
        "messages": sorted(messages),
        "slowest": slowest,
        "faults": faults,
    }


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _kind(message: str) -> str:
    """A message without what differs from input to input, to count the kinds."""
    words = [word for word in message.split() if word.isalpha()]
    return " ".join(words[:6])


def summary(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """All pieces as one table."""
    ends: Counter[str] = Counter()
    for piece in pieces:
        ends.update(piece["ends"])
    codes: Counter[str] = Counter()
    for end, count in ends.items():
        codes[end.split()[1]] += count
    slowest = max((piece["slowest"] for piece in pieces), default=[0.0, -1])
    return {
        "library_version": __version__,
        "inputs": sum(piece["count"] for piece in pieces),
        "seeds": [
            min(piece["first"] for piece in pieces),
            max(piece["first"] + piece["count"] for piece in pieces) - 1,
        ],
        "exit_codes": dict(sorted(codes.items())),
        "ends": dict(sorted(ends.items())),
        "kinds_of_messages": len({kind for piece in pieces for kind in piece["messages"]}),
        "limit_seconds": LIMIT,
        "slowest_seconds": round(slowest[0], 2),
        "slowest_seed": slowest[1],
        "faults": [fault for piece in pieces for fault in piece["faults"]],
    }


def run(first: int, inputs: int, workers: int, folder: Path, piece: int = PIECE) -> dict[str, Any]:
    """Judge all inputs that have not been judged yet; return the summary of all."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {start: folder / f"{start:08d}.json" for start in range(first, first + inputs, piece)}
    missing = [start for start, path in wanted.items() if not path.exists()]
    with ProcessPoolExecutor(workers, initializer=_limit_memory) as pool:
        jobs = [pool.submit(run_piece, start, piece) for start in missing]
        for done, job in enumerate(as_completed(jobs), start=1):
            result = job.result()
            with appearing(wanted[result["first"]]) as rough:
                rough.write_text(json.dumps(result))
            print(f"{done}/{len(jobs)} pieces, {len(result['faults'])} faults", flush=True)
    return summary([json.loads(path.read_text()) for path in wanted.values()])


def main() -> int:
    """Run from the command line; the exit code says whether there were faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first input")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("graphratio-fuzz"))
    parser.add_argument("--output", type=Path, help="file for the summary")
    parser.add_argument("--seed", type=int, help="judge this one input and say what it did")
    options = parser.parse_args()
    if options.seed is not None:
        made = case(options.seed)
        with tempfile.TemporaryDirectory() as place:
            verdict = judge(made, Path(place))
        print(made.arguments, {k: v[:2000] for k, v in made.files.items()}, verdict, sep="\n")
        return int(bool(verdict.faults))
    found = run(options.first, options.inputs, options.workers, options.folder)
    print(json.dumps(found, indent=1))
    if options.output is not None:
        with appearing(options.output) as rough:
            rough.write_text(json.dumps(found, indent=1) + "\n")
    return int(bool(found["faults"]))


if __name__ == "__main__":
    sys.exit(main())
