"""Run the blocks of code of a page, from top to bottom, in a folder with the data of the site."""

import ast
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from html import escape

from graphratio.exceptions import DataWarning


class BlockFailed(Exception):
    """A block of code on a page raised an error; `line` counts from the top of the block."""

    def __init__(self, error, line):
        super().__init__(f"{type(error).__name__}: {error}")
        self.line = line


class Page:
    """The state of one page: its namespace, and the folder where it is run."""

    def __init__(self, folder, data):
        self.names = {"__name__": "page"}
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "docs").mkdir(parents=True)
        (folder / "docs" / "data").symlink_to(data, target_is_directory=True)
        for path in data.glob("*.csv"):
            (folder / path.name).symlink_to(path)

    def command(self, text):
        """Run the commands of graphratio in a block; return what they print."""
        lines = re.sub(r"\\\n\s*", "", text).splitlines()
        printed = []
        for line in lines:
            words = shlex.split(line.removeprefix("$ "))
            if not line.startswith("$ graphratio"):
                continue
            ran = subprocess.run(
                [sys.executable, "-m", *words],
                cwd=self.folder,
                env={**os.environ, "COLUMNS": "92", "NO_COLOR": "1"},
                capture_output=True,
                text=True,
            )
            if ran.returncode:
                raise BlockFailed(RuntimeError(ran.stderr), 1 + lines.index(line))
            printed.append(ran.stdout)
        return "".join(printed)

    def run(self, source):
        """Run one block; return what it printed and the value of its last line."""
        tree = ast.parse(source)
        # As in a notebook, a semicolon at the end hides the last value.
        shows = isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")
        last = tree.body.pop() if shows else None
        printed, value = io.StringIO(), None
        try:
            with (
                contextlib.chdir(self.folder),
                contextlib.redirect_stdout(printed),
                warnings.catch_warnings(),
            ):
                # A page that warns leaves its reader with a riddle; notes on the data are shown.
                warnings.simplefilter("error")
                warnings.filterwarnings("always", category=DataWarning)
                warnings.filterwarnings("default", module="densratio|ruptures")
                warnings.showwarning = _said
                exec(compile(tree, "<page>", "exec"), self.names)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), "<page>", "eval"), self.names)
        except Exception as error:
            at, line = error.__traceback__, 1
            while at is not None:
                line = at.tb_lineno if at.tb_frame.f_code.co_filename == "<page>" else line
                at = at.tb_next
            raise BlockFailed(error, line) from error
        return printed.getvalue(), value


def _said(message, category, *args, **kwargs):
    """Print a warning as the results of a page show it."""
    if issubclass(category, DataWarning):
        print(f"{category.__name__}: {message}")


def figures(folder, stem):
    """Save and close all open figures; return their paths."""
    from matplotlib import pyplot as plt

    paths = []
    for number in plt.get_fignums():
        folder.mkdir(parents=True, exist_ok=True)
        paths.append(folder / f"{stem}-{len(paths) + 1}.png")
        plt.figure(number).savefig(paths[-1], dpi=150, bbox_inches="tight")
    plt.close("all")
    return paths


def shown(value):
    """The value of a last line as HTML, or None where there is nothing to see."""
    # Axes and what they draw are seen in their figure.
    inside = value.flat[0] if hasattr(value, "flat") and value.size else value
    inside = inside[0] if isinstance(inside, list | tuple) and inside else inside
    if value is None or type(inside).__module__.partition(".")[0] == "matplotlib":
        return None
    if hasattr(value, "to_html") and hasattr(value, "columns"):
        return value.to_html(border=0, float_format="{:.3g}".format)
    if hasattr(value, "_repr_html_"):
        return value._repr_html_()
    return f"<pre>{escape(repr(value))}</pre>"
