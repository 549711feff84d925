"""Running one input in this process, and what counts as a fault."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from graphratio.changepoints import GraphChangePointDetector
from graphratio.cli.app import app
from graphratio.exceptions import GraphRatioError
from tests.fuzz.cases import Case

# Seconds of wall time after which an input counts as hanging; the usual one needs 0.02.
LIMIT = 20.0
# `predict` prints a table of data as they are.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_DATA = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)


class Hang(BaseException):
    """The time is over; not an Exception, so that nothing takes it for one of its own."""


@dataclass(frozen=True)
class Verdict:
    """What an input did.

    Attributes
    ----------
    code : int or None
        Exit code: 0 a result, 1 an error about the data, 2 one about the options.
    faults : list of str
        Empty if all is well.
    seconds : float
    message : str
        The error that was told.
    """

    code: int | None
    faults: list[str]
    seconds: float
    message: str


@cache
def program() -> Any:
    """The command line, built once."""
    return typer.main.get_command(app)


def judge(case: Case, folder: Path, limit: float = LIMIT) -> Verdict:
    """Write the files of an input to an empty folder, run it, and check everything about it."""
    paths = {"out": folder / "out"}
    for name, content in case.files.items():
        paths[name] = folder / name
        paths[name].write_bytes(content)
    arguments = [_filled(argument, paths) for argument in case.arguments]
    out, err = _stream("strict"), _stream("backslashreplace")
    faults: list[str] = []
    code: int | None = None
    began = time.perf_counter()
    try:
        with _captured(out, err), _limited(limit), warnings.catch_warnings():
            # Every warning that reaches the user's screen is a fault, not only the first.
            warnings.simplefilter("always")
            program().main(args=arguments, prog_name="graphratio")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except Hang:
        faults.append("hang")
    except BaseException:
        faults.append(f"raw traceback: {traceback.format_exc()}")
    seconds = time.perf_counter() - began
    printed, told = _text(out), _text(err)
    if code is not None:
        faults += _checked(case, code, printed, told, paths["out"])
    before = set(case.files)
    faults += [f"left behind: {e.name}" for e in folder.iterdir() if e.name not in {*before, "out"}]
    message = next((line for line in told.splitlines() if line.startswith("error: ")), "")
    for entry in folder.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return Verdict(code, faults, seconds, message)


def _stream(errors: str) -> io.TextIOWrapper:
    """Like Python's own: what cannot be encoded stops standard output, not standard error."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, newline="")


def _filled(argument: str, paths: dict[str, Path]) -> str:
    name = argument[1:-1]
    return str(paths[name]) if argument == f"{{{name}}}" and name in paths else argument


@contextlib.contextmanager
def _captured(out: Any, err: Any) -> Iterator[None]:
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def over(*_: Any) -> None:
        raise Hang

    old = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def _text(stream: Any) -> str:
    stream.flush()
    return str(stream.buffer.getvalue().decode("utf-8", "surrogatepass"))


def _checked(case: Case, code: int, printed: str, told: str, output: Path) -> Iterator[str]:
    """Everything that is wrong with how a command ended."""
    if "Traceback" in told or ".py:" in told:
        yield f"internals on the screen: {told[-500:]}"
    if _CONTROLS.search(told) or (case.command != "predict" and _CONTROLS.search(printed)):
        yield f"control characters on the screen: {told!r}"
    if code == 0:
        yield from _result(case, printed, output)
        return
    if code not in (1, 2):
        yield f"exit code {code}"
    if printed:
        yield f"an error, and yet a result: {printed[:200]!r}"
    if output.exists():
        yield "an error, and yet an output"
    if code == 1:
        starts = [line.split(":")[0] for line in told.splitlines()]
        if starts.count("error") != 1 or starts.count("hint") != 1 or set(starts) > _STARTS:
            yield f"not one error and one hint: {told[:500]!r}"
        longest = max(map(len, told.splitlines()), default=0)
        if longest > 3000:
            yield f"a message of {longest} characters"


_STARTS = {"error", "hint", "note"}


def _result(case: Case, printed: str, output: Path) -> Iterator[str]:
    if "--json" in case.arguments:
        try:
            content = json.loads(printed, parse_constant=_no_constant)
        except ValueError as error:
            yield f"standard output is not JSON: {error}"
        else:
            yield from _numbers(content)
    if case.command == "predict" and output.exists():
        yield from _table(output, {"ratio"})
        return
    if case.command in ("predict", "info"):
        return
    names = {entry.name for entry in output.iterdir()}
    if any(name.startswith(".") for name in names):
        yield f"hidden files: {names}"
    for entry in output.iterdir():
        if entry.suffix == ".csv":
            yield from _table(entry, set())
        elif entry.suffix == ".html":
            yield from _page(entry)
        elif entry.suffix == ".graphratio":
            yield from _loads(entry)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _numbers(content: dict[str, Any]) -> Iterator[str]:
    """A node with both samples has a divergence; settings are numbers."""
    for row in content.get("most_changed", []):
        if row["divergence"] is None and row["n_reference"] and row["n_target"]:
            yield f"no divergence: {row}"
    for name, value in content.get("settings", {}).items():
        if value is None:
            yield f"no {name}"
    ratios = content.get("ratios", {}).get("ratio", [])
    if None in ratios:
        yield "a ratio that is no number"


def _table(path: Path, filled: set[str]) -> Iterator[str]:
    """Numbers of a table are finite; a column in `filled`, and divergences, are there."""
    with path.open(encoding="utf-8", newline="") as stream:
        csv.field_size_limit(sys.maxsize)
        rows = list(csv.DictReader(stream))
    for row in rows:
        for name, value in row.items():
            if name in ("divergence", "p_value", "ratio", "statistic") and value:
                if not math.isfinite(float(value)):
                    yield f"{name} is {value}"
            elif name in filled:
                yield f"{name} is empty"
        both = row.get("n_reference") not in (None, "0") and row.get("n_target") not in (None, "0")
        if both and row.get("divergence") == "":
            yield f"no divergence: {row}"


def _page(path: Path) -> Iterator[str]:
    page = path.read_text(encoding="utf-8")
    blocks = _DATA.findall(page)
    if not blocks:
        yield "a page without data"
    for block in blocks:
        try:
            json.loads(block, parse_constant=_no_constant)
        except ValueError as error:
            yield f"data of the page: {error}"


def _loads(path: Path) -> Iterator[str]:
    import graphratio as gr

    read = GraphChangePointDetector.load if path.name.startswith("detector") else gr.load
    try:
        read(path)
    except GraphRatioError as error:
        yield f"what was saved cannot be read: {error}"
