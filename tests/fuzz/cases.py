"""One input of the fuzzer: files and the command that reads them, a function of a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.fuzz import archives, tables

COMMANDS = ("report", "fit", "test", "changes", "predict", "info", "graphs")
# `report` is what most people run; all of its reading is in the others, too.
_WEIGHTS = (22, 30, 10, 4, 17, 15, 2)
_SIDES = ["--sample", "period", "--reference", "before", "--target", "after"]


@dataclass(frozen=True)
class Case:
    """Files by name, and the arguments of the program; `{name}` is the path of a file.

    Attributes
    ----------
    seed : int
    files : dict of str to bytes
    arguments : list of str
    """

    seed: int
    files: dict[str, bytes]
    arguments: list[str]

    @property
    def command(self) -> str:
        """Name of the command."""
        return self.arguments[0]


def case(seed: int) -> Case:
    """The input with this number; the same whenever and wherever it is made."""
    rng = random.Random(seed)
    (command,) = rng.choices(COMMANDS, _WEIGHTS)
    if command in ("predict", "info"):
        files, arguments = _on_model(command, rng)
    else:
        files, arguments = _on_table(command, rng)
    if rng.random() < 0.4:
        arguments.append("--json")
    return Case(seed, files, [command, *arguments])


def _file(rows: tables.Rows, rng: random.Random, stem: str) -> tuple[str, bytes]:
    """A name and the bytes; damaged in a twelfth of all."""
    if rng.random() < 0.75:
        tables.spoil(rows, rng)
    if rng.random() < 0.15:
        name, content = f"{stem}.parquet", tables.as_parquet(rows, rng)
    else:
        name, content = f"{stem}.csv", tables.as_csv(rows, rng)
    if rng.random() < 0.1:
        content = tables.packed(content, rng)
    if rng.random() < 0.08:
        content = tables.damage(content, rng)
    if rng.random() < 0.03:
        ending = rng.choice([".tsv", ".txt", "", ".parquet", ".csv", ".zip", ".xz", ".tar", ".zst"])
        name = stem + ending
    return name, content


def _on_table(command: str, rng: random.Random) -> tuple[dict[str, bytes], list[str]]:
    if rng.random() < 0.1:
        return _on_wide(command, rng)
    rows = tables.series(rng) if command == "changes" else tables.observations(rng)
    name, content = _file(rows, rng, "data")
    files = {name: content}
    arguments = [f"{{{name}}}", "--node", _name(rows, 0, rng), "--output", "{out}"]
    arguments += _reading(rng)
    if command == "changes":
        arguments += ["--time", _name(rows, 2, rng), "--window", rng.choice(["4", "4", "4", "5"])]
        arguments += ["--surrogates", "19"]
    elif rng.random() < 0.75:
        arguments += ["--sample", _name(rows, 1, rng), *_SIDES[2:]]
    else:
        arguments += ["--time", _name(rows, 2, rng), *_times(rng)]
    if rng.random() < 0.7:
        chosen = [_name(rows, 3, rng), _name(rows, 4, rng)][: rng.randint(1, 2)]
        arguments += ["--features", ",".join(chosen)]
    if rng.random() < 0.4:
        arguments += ["--missing", "drop"]
    arguments += _graph(files, rows, rng, both=command == "graphs")
    if command in ("report", "fit"):
        arguments += _fitting(rng)
    if command in ("report", "fit", "test") and rng.random() < 0.1:
        arguments.append("--geojson")
    if command == "test" or (command == "report" and rng.random() < 0.1):
        arguments += [] if command == "test" else ["--test"]
        arguments += ["--permutations", rng.choice(["1", "19", "99"]), "--correction", "none"]
        if rng.random() < 0.2 and "--time" not in arguments:
            arguments += ["--time", _name(rows, 2, rng)]
        if rng.random() < 0.2:
            arguments += ["--block", rng.choice(["1", "2", "50", "none", "1D", "6h", "x"])]
        if command == "test" and rng.random() < 0.3:
            arguments += ["--null", "global"]
    if command not in ("changes", "graphs") and rng.random() < 0.2:
        arguments += ["--max-observations", rng.choice(["2", "3", "1000000"])]
    if rng.random() < 0.1:
        arguments += [
            "--delimiter",
            rng.choice([",", ";", "tab", "", "\\", '"', "\n", "ab", "\u00e9"]),
        ]
    return files, arguments


def _on_wide(command: str, rng: random.Random) -> tuple[dict[str, bytes], list[str]]:
    name, content = _file(tables.wide(rng, rng.choice([2, 6, 16])), rng, "data")
    files = {name: content}
    arguments = [f"{{{name}}}", "--wide", "--output", "{out}", *_reading(rng)]
    if command == "changes":
        arguments += ["--time", "date", "--surrogates", "19"]
    else:
        arguments += rng.choice([_SIDES, ["--time", "date", *_times(rng)]])
    if rng.random() < 0.3:
        arguments += ["--features", rng.choice(["flow", "s0", "node", "value", "a,b", ""])]
    arguments += _edges(files, rng) if command == "graphs" or rng.random() < 0.5 else ["--no-graph"]
    return files, arguments


def _reading(rng: random.Random) -> list[str]:
    """How missing values and dates are written."""
    arguments: list[str] = []
    if rng.random() < 0.1:
        arguments += [
            "--na-values",
            rng.choice(["-999", "0", "s0", "before", "", ",", "nan,-", "1e3"]),
        ]
    if rng.random() < 0.05:
        formats = ["%Y-%m-%d", "%d.%m.%Y", "%Q", "%", "", "%Y", "x", "%s", "mixed"]
        arguments += ["--date-format", rng.choice(formats)]
    return arguments


def _name(rows: tables.Rows, column: int, rng: random.Random) -> str:
    """Name of a column, most often the one that was meant."""
    if rng.random() < 0.02:
        return rng.choice([*tables.LABELS, *tables.HEADER])
    meant = tables.HEADER[column]
    if meant in rows[0] or rng.random() < 0.3 or column >= len(rows[0]):
        return meant
    # Renamed by a mutation: follow it, so that strange names get all the way through.
    return rows[0][column].strip()


def _times(rng: random.Random) -> list[str]:
    if rng.random() < 0.7:
        split = "2020-03-01" if rng.random() < 0.8 else rng.choice(tables.DATES)
        return ["--split", split]
    ranges = ["2020-02-01:2020-02-28", "2020-03-01:2020-03-31"]
    if rng.random() < 0.3:
        ranges[rng.randrange(2)] = rng.choice(["", ":", "1:2", "2020", "2021:2020", "a:b", ":::"])
    return ["--reference-range", ranges[0], "--target-range", ranges[1]]


def _edges(files: dict[str, bytes], rng: random.Random) -> list[str]:
    rows = tables.matrix(rng) if rng.random() < 0.3 else tables.edges(rng)
    name, content = _file(rows, rng, "edges")
    files[name] = content
    return ["--edges", f"{{{name}}}", *(["--allow-isolated"] if rng.random() < 0.8 else [])]


def _graph(
    files: dict[str, bytes], rows: tables.Rows, rng: random.Random, *, both: bool
) -> list[str]:
    kind = rng.random()
    if kind < 0.35 and not both:
        return ["--no-graph"]
    if kind < 0.65:
        return _edges(files, rng)
    places = f"{_name(rows, 5, rng)},{_name(rows, 6, rng)}"
    more = ["--metric", rng.choice(["haversine", "euclidean"])] if rng.random() < 0.3 else []
    return ["--coordinates", places, "--neighbors", rng.choice(["1", "1", "1", "2"]), *more]


def _fitting(rng: random.Random) -> list[str]:
    arguments: list[str] = []
    if rng.random() < 0.95:
        # The quick ones more often; reading is the same for all.
        (name,) = rng.choices(["rulsif", "ulsif", "pool", "grulsif", "kliep"], [12, 6, 2, 1, 1])
        arguments += ["--estimator", name]
    if rng.random() < 0.2:
        arguments += ["--alpha", rng.choice(["0", "0.5", "0.999999", "1e-300", "1e-9", "nan"])]
    if rng.random() < 0.2:
        arguments += ["--standardize", rng.choice(["none", "all", "node", "", "Node"])]
    if rng.random() < 0.1:
        arguments += ["--log", rng.choice(["pm25", "no2", "pm25,no2", "lat", ""])]
    return arguments


def _on_model(command: str, rng: random.Random) -> tuple[dict[str, bytes], list[str]]:
    (name,) = rng.choices(archives.ESTIMATORS, [4, 3, 2, 4, 2, 2, 1])
    content = archives.saved(name) if rng.random() < 0.2 else archives.spoiled(name, rng)
    if rng.random() < 0.15:
        content = tables.damage(content, rng)
    files = {"model": content}
    if command == "info":
        return files, ["{model}"]
    rows = tables.points(rng)
    points, content = _file(rows, rng, "points")
    files[points] = content
    arguments = ["{model}", f"{{{points}}}"]
    if rng.random() < 0.3:
        arguments += ["--at", "s0" if rng.random() < 0.7 else rng.choice(tables.LABELS)]
    elif rng.random() < 0.4:
        arguments += ["--node", _name([rows[0]], 0, rng) if rng.random() < 0.1 else "station"]
    if rng.random() < 0.3:
        arguments += ["--output", "{out}"]
    return files, arguments
