"""Tables of observations and of edges with something wrong with them, as the bytes of a file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile

import pandas as pd
import pyarrow as pa

HEADER = ["station", "period", "date", "pm25", "no2", "lat", "lon"]

# What may stand where a number, a label, a sample or a date is expected.
NUMBERS = [
    "", " ", "nan", "NaN", "-nan", "inf", "-Inf", "Infinity", "1e308", "-1e308", "1e309", "1e-320",
    "1e200", "-1e200", "1e16", "9" * 400, "0." + "0" * 400 + "1", "0x10", "1_000", "1,5", "1.000,5",
    "1 000", "\u0661\u0662", "\uff11\uff12", "\u00bd", "\u221e", "\u22125", "true", "False", "N/A",
    "null", "None", "-", "--5", "+", "1e", "1.2.3", "1e5", "-0", "-0.0", "5%", "$5", "1d3",
    "2020-01-01", "0", "1", "1e-300", "4.9e-324", "1.7976931348623157e308", "#REF!", "1;2", "3\t4",
]  # fmt: skip
LABELS = [
    "", " ", "nan", "None", "0", "00", "1.0", "1e3", "true", "s0 ", " s0", "S0", "s\u0030",
    "<script>document.title='!'</script>", "</script><script>document.title='!'</script>",
    "<img src=x onerror=document.title='!'>", "\"'`", "a\"b", "a'b", "{{ 7*7 }}", "{% raw %}",
    "${x}", "=1+1", "@SUM(A1)", "[red]x[/red]", "[/]", "\\", "\\n", "%s%d%n", "a,b", "a;b", "a\tb",
    "a\nb", "a\r\nb", "\u202egnp.exe", "\u0000", "\u0007\u001b[31m", "\ufeffs0", "\u200b",
    "e\u0301", "\u00e9", "\U0001f600", "\u2028", "x" * 300, "\U000e0041", "../../etc/passwd",
    "con", "__proto__", "constructor", "&amp;", "&", "<", "-->", "]]>", "\ud800",
]  # fmt: skip
SAMPLES = ["", "Before", "before ", "after", "neither", "0", "nan", "\u00e4fter"]
DATES = [
    "", "2020-13-45", "0000-00-00", "10000-01-01", "1677-09-21", "2262-04-12", "9999-12-31", "now",
    "2020-02-30", "2020-03-01T25:00", "2020-03-01T00:00:00+14:00", "2020-03-01 12:00", "2020", "03",
    "01/03/2020", "1583020800", "2020-W10", "2020-060", "20200301", "-0001-01-01", "NaT", "today",
    "2020-03-01T00:00:00.123456789123", "1e400", "\u0662\u0660\u0662\u0660-01-01", "1", "1.5",
]  # fmt: skip
_BY_COLUMN = {"station": LABELS, "period": SAMPLES, "date": DATES, "a": LABELS, "b": LABELS}
_SCALES = (1e-300, 1e-150, 1e-9, 1.0, 1e9, 1e150, 1e300)

Rows = list[list[str]]


def observations(rng: random.Random) -> Rows:
    """Header and rows of a small proper table."""
    n_nodes, n_rows = rng.randint(1, 4), rng.choice([1, 2, 3, 3, 4, 6])
    rows = [list(HEADER)]
    for v in range(n_nodes):
        for period, month in (("before", 2), ("after", 3)):
            for day in range(1, n_rows + 1):
                numbers = [f"{rng.gauss(month * (v == 0), 1):.4g}" for _ in range(2)]
                place = [str(50 + v), str(4 + v % 2)]
                rows.append([f"s{v}", period, f"2020-{month:02d}-{day:02d}", *numbers, *place])
    return rows


def series(rng: random.Random) -> Rows:
    """Header and rows of a small proper table over time."""
    n_nodes, n_times = rng.randint(1, 3), rng.choice([15, 16, 17, 20])
    rows = [list(HEADER)]
    for t in range(n_times):
        for v in range(n_nodes):
            numbers = [f"{rng.gauss(3 * (t > 9), 1):.4g}" for _ in range(2)]
            rows.append([f"s{v}", "before", f"2020-01-{t + 1:02d}", *numbers, str(50 + v), "4"])
    return rows


def edges(rng: random.Random) -> Rows:
    """Header and rows of edges along a line, with or without weights."""
    weighted = rng.random() < 0.5
    n_nodes = rng.randint(2, 5)
    rows = [["a", "b", "weight"][: 2 + weighted]]
    ends = [(f"s{v}", f"s{v + 1}") for v in range(n_nodes - 1)]
    rows += [[*pair, f"{rng.random():.3g}"][: 2 + weighted] for pair in ends]
    return rows


def wide(rng: random.Random, n_times: int) -> Rows:
    """Header and rows of a table with one column per node."""
    nodes = [f"s{v}" for v in range(rng.randint(1, 4))]
    rows = [["period", "date", *nodes]]
    for t in range(n_times):
        period, month = ("before", 2) if t < n_times // 2 else ("after", 3)
        numbers = [f"{rng.gauss(month, 1):.4g}" for _ in nodes]
        rows.append([period, f"2020-{month:02d}-{t % 28 + 1:02d}", *numbers])
    return rows


def matrix(rng: random.Random) -> Rows:
    """A square matrix of weights, with or without labels of the rows."""
    nodes, named = [f"s{v}" for v in range(rng.randint(2, 5))], rng.random() < 0.5
    rows = [["", *nodes] if named else nodes]
    for v, node in enumerate(nodes):
        weights = [
            rng.choice(["0", "1"]) if v != u else rng.choice("01") for u, _ in enumerate(nodes)
        ]
        rows.append([node, *weights] if named else weights)
    return rows


def zipped(content: bytes) -> bytes:
    """The same in an archive, whose only entry bears no time of today."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("data.csv"), content)
    return buffer.getvalue()


def packed(content: bytes, rng: random.Random) -> bytes:
    """The same, compressed in one of the ways that are unpacked."""
    zstandard = pa.compress(content, codec="zstd", asbytes=True)
    ways = [
        gzip.compress(content, mtime=0),
        bz2.compress(content),
        lzma.compress(content, preset=0),
    ]
    return rng.choice([*ways, zipped(content), zstandard])


def points(rng: random.Random) -> Rows:
    """Points at which a model is evaluated."""
    body = [
        [f"{rng.gauss(0, 2):.4g}", f"{rng.gauss(0, 2):.4g}", f"s{rng.randint(0, 2)}"]
        for _ in range(rng.randint(1, 4))
    ]
    return [["pm25", "no2", "station"], *body]


def spoil(rows: Rows, rng: random.Random) -> None:
    """Change cells, columns and rows in place."""
    for _ in range(rng.choice([0, 1, 1, 1, 2])):
        rng.choice([_cells, _cells, _cells, _column, _column, _lines, _header])(rows, rng)


def _cells(rows: Rows, rng: random.Random) -> None:
    column = rng.randrange(len(rows[0]))
    values = _BY_COLUMN.get(rows[0][column], NUMBERS)
    if rng.random() < 0.1:
        values = LABELS
    value = rng.choice(values)
    chosen = [row for row in rows[1:] if len(row) > column]
    old = rng.choice(chosen)[column] if chosen else ""
    everywhere = rng.random() < 0.4
    for row in chosen:
        # All rows of a node at once, so that a strange label is a node like others.
        if (everywhere and row[column] == old) or rng.random() < 0.1:
            row[column] = value


def _column(rows: Rows, rng: random.Random) -> None:
    column = rng.randrange(len(rows[0]))
    scale, constant = rng.choice(_SCALES), rng.choice(NUMBERS)
    kind = rng.choice(["scale", "constant", "drop", "copy", "unique", "empty", "swap"])
    other = rng.randrange(len(rows[0]))
    for place, row in enumerate(rows):
        if len(row) <= max(column, other):
            continue
        if kind == "drop":
            del row[column]
        elif kind == "copy":
            row.append(row[column])
        elif kind == "swap":
            row[column], row[other] = row[other], row[column]
        elif place and kind == "scale":
            try:
                row[column] = repr(float(row[column]) * scale)
            except ValueError:
                row[column] = constant
        elif place:
            row[column] = {"constant": constant, "unique": f"u{place}", "empty": ""}[kind]


def _lines(rows: Rows, rng: random.Random) -> None:
    kind = rng.choice(["few", "double", "shuffle", "short", "long", "blank", "header", "none"])
    if kind == "few":
        del rows[1 + rng.randint(0, 3) :]
    elif kind == "double":
        rows.extend([*row] for row in rows[1:])
    elif kind == "shuffle":
        body = rows[1:]
        rng.shuffle(body)
        rows[1:] = body
    elif kind == "none":
        del rows[1:]
    elif len(rows) > 1:
        place = rng.randrange(1, len(rows))
        wrong = {"short": rows[place][:1], "long": [*rows[place], "9"], "blank": [""]}
        rows[place] = wrong.get(kind, list(rows[0]))


def _header(rows: Rows, rng: random.Random) -> None:
    column = rng.randrange(len(rows[0]))
    rows[0][column] = rng.choice([*LABELS, *HEADER, "PM25", " pm25 "])


def as_csv(rows: Rows, rng: random.Random) -> bytes:
    """Bytes of a text file, often not quite as they should be."""
    delimiter = "," if rng.random() < 0.95 else rng.choice(";\t|, ")
    quoting = rng.random()
    lines = []
    for row in rows:
        fields = [cell.replace('"', '""') for cell in row]
        needs = [
            quoting < 0.2 or (any(c in cell for c in f'{delimiter}"\r\n') and quoting < 0.9)
            for cell in fields
        ]
        lines.append(
            delimiter.join(f'"{f}"' if n else f for f, n in zip(fields, needs, strict=True))
        )
    text = rng.choice(["\n", "\n", "\n", "\r\n", "\r"]).join(lines) + rng.choice(["", "\n", "\n\n"])
    encoding = "utf-8" if rng.random() < 0.95 else rng.choice(
        ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift-jis"]
    )  # fmt: skip
    if encoding.startswith("utf-8"):
        return text.encode(encoding, "surrogatepass")
    return text.encode(encoding, "replace" if "utf" not in encoding else "surrogatepass")


def as_parquet(rows: Rows, rng: random.Random) -> bytes:
    """Bytes of a Parquet file, with columns of various types."""
    width = max(map(len, rows))
    body = [[*row, *[""] * (width - len(row))] for row in rows[1:]]
    # A file with two columns of one name cannot be written from a frame.
    names = [f"{name}_" if name in rows[0][:i] else name for i, name in enumerate(rows[0])]
    names += [f"more{i}" for i in range(width - len(names))]
    clean = [name.encode("utf-8", "replace").decode() for name in names]
    text = [[cell.encode("utf-8", "replace").decode() for cell in row] for row in body]
    frame = pd.DataFrame(text, columns=clean)
    for name in clean:
        frame[name] = _typed(frame[name], rng) if frame[name].ndim == 1 else frame[name]
    buffer = io.BytesIO()
    try:
        frame.to_parquet(buffer, index=rng.random() < 0.1)
    except Exception:
        # pyarrow refuses some mixtures; text goes always.
        buffer = io.BytesIO()
        frame.loc[:, ~frame.columns.duplicated()].astype(str).to_parquet(buffer)
    return buffer.getvalue()


def _typed(column: pd.Series, rng: random.Random) -> pd.Series:
    kind = rng.choice(["number"] * 6 + ["text", "category", "bytes", "date", "bool", "list", "int"])
    if kind in ("number", "int"):
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().any():
            return numbers.round().astype("Int64") if _whole(numbers, kind) else numbers
        return column
    if kind == "date":
        return pd.to_datetime(column, errors="coerce", format="ISO8601", utc=rng.random() < 0.5)
    if kind == "category":
        return column.astype("category")
    if kind == "bytes":
        return column.map(lambda value: value.encode())
    if kind == "bool":
        return column.map(lambda value: len(value) % 2 == 0)
    return column.map(lambda value: [value]) if kind == "list" else column


def _whole(numbers: pd.Series, kind: str) -> bool:
    return kind == "int" and bool((numbers.abs() < 2**53).all())


def damage(content: bytes, rng: random.Random) -> bytes:
    """Bytes that are lost, added, changed or packed."""
    kind = rng.choice(["flip", "cut", "insert", "pack", "nul", "noise", "repeat", "tail", "field"])
    place = rng.randrange(len(content) + 1)
    if kind == "flip":
        changed = bytearray(content)
        for _ in range(rng.randint(1, 4) if changed else 0):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed)
    if kind == "pack":
        return rng.choice([gzip.compress(content, mtime=0), zipped(content)])
    if kind == "field":
        # Beyond the 131,072 characters at which Python's own reader stops.
        return content[:place] + b"a" * rng.choice([1000, 200_000]) + content[place:]
    extra = {
        "insert": rng.choice([b'"', b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\r", b"\\", b",,,", b"#"]),
        "nul": b"\x00" * rng.randint(1, 5000),
        "noise": rng.randbytes(rng.randint(1, 300)),
        "repeat": content[: rng.randrange(200)],
    }
    if kind in extra:
        return content[:place] + extra[kind] + content[place:]
    return content[:place] if kind == "cut" else content[place:]
