"""The full run: many inputs over several processes; stopped and started again, it goes on.

    python -m tests.fuzz --inputs 20000 --workers 2 --folder graphratio-fuzz

Every finished piece is a file in the folder; the summary is printed and written as JSON. One
input by itself, with what it did: python -m tests.fuzz --seed 4711
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import resource
import tempfile
from collections import Counter
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from graphratio._utils.files import appearing
from graphratio._version import __version__
from tests.fuzz.cases import case
from tests.fuzz.judge import LIMIT, judge

PIECE = 250
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
MARKS = ("<!-- fuzz -->\n", "<!-- end of fuzz -->\n")
# Bytes of address space of a worker: an input that makes it ask for more is a fault.
MEMORY = 6 * 2**30


def run_piece(first: int, count: int) -> dict[str, Any]:
    """Judge inputs first .. first + count - 1."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, usual[1]))
    try:
        return _judged(first, count)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


def _judged(first: int, count: int) -> dict[str, Any]:
    ends: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    faults, slowest = [], (0.0, -1)
    with tempfile.TemporaryDirectory(prefix="graphratio-fuzz-") as place:
        for seed in range(first, first + count):
            made = case(seed)
            # Should compiled code hang, which no signal reaches, the process ends: `run` tells.
            faulthandler.dump_traceback_later(5 * LIMIT, exit=True)
            verdict = judge(made, Path(place))
            faulthandler.cancel_dump_traceback_later()
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
        "seeds": _ranges(pieces),
        "exit_codes": dict(sorted(codes.items())),
        "ends": dict(sorted(ends.items())),
        "kinds_of_messages": len({kind for piece in pieces for kind in piece["messages"]}),
        "limit_seconds": LIMIT,
        "slowest_seconds": round(slowest[0], 2),
        "slowest_seed": slowest[1],
        "faults": [fault for piece in pieces for fault in piece["faults"]],
    }


def _ranges(pieces: list[dict[str, Any]]) -> list[list[int]]:
    """First and last seed of every stretch without a gap."""
    found: list[list[int]] = []
    for piece in sorted(pieces, key=lambda piece: int(piece["first"])):
        last = piece["first"] + piece["count"] - 1
        if found and found[-1][1] + 1 == piece["first"]:
            found[-1][1] = last
        else:
            found.append([piece["first"], last])
    return found


def run(first: int, inputs: int, workers: int, folder: Path, piece: int = PIECE) -> dict[str, Any]:
    """Judge all inputs that have not been judged yet; return the summary of all."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {start: folder / f"{start:08d}.json" for start in range(first, first + inputs, piece)}
    missing = [start for start, path in wanted.items() if not path.exists()]
    pool = Parallel(workers, return_as="generator_unordered", batch_size=1)
    try:
        judged = pool(delayed(run_piece)(start, piece) for start in missing)
        for done, found in enumerate(judged, start=1):
            with appearing(wanted[found["first"]]) as rough:
                rough.write_text(json.dumps(found))
            print(f"{done}/{len(missing)} pieces, {len(found['faults'])} faults", flush=True)
    except BrokenExecutor as error:
        # No more than these have been given to the workers.
        begun = [start for start in missing if not wanted[start].exists()][: 2 * workers]
        raise RuntimeError(
            f"an input killed its process; look in the pieces of {piece} inputs from {begun}"
        ) from error
    return summary([json.loads(path.read_text()) for path in wanted.values()])


def table(found: dict[str, Any]) -> str:
    """The summary as Markdown: how the inputs of every command ended."""
    commands = sorted({end.split()[0] for end in found["ends"]})
    ends = {"result": "0", "error about the data": "1", "error about the options": "2"}
    rows = [["command", *ends], ["---"] + ["---:"] * len(ends)]
    for command in commands:
        counts = [found["ends"].get(f"{command} {code}", 0) for code in ends.values()]
        rows.append([f"`{command}`", *(f"{count:,}" for count in counts)])
    seeds = ", ".join(f"{first} to {last}" for first, last in found["seeds"])
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return (
        f"{found['inputs']:,} inputs (seeds {seeds}), "
        f"{len(found['faults'])} faults, {found['kinds_of_messages']} kinds of messages; the "
        f"slowest took {found['slowest_seconds']:g} s.\n\n{lines}"
    )


def write_page(found: dict[str, Any]) -> None:
    """Put the table into the page."""
    begin, end = MARKS
    before, rest = PAGE.read_text().split(begin)
    with appearing(PAGE) as rough:
        rough.write_text(f"{before}{begin}\n{table(found)}\n{end}{rest.split(end)[1]}")


def main() -> int:
    """Run from the command line; the exit code says whether there were faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first input")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("graphratio-fuzz"))
    parser.add_argument("--output", type=Path, help="file for the summary; also the page")
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
        write_page(found)
    return int(bool(found["faults"]))
