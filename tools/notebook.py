"""Write docs/tutorial.ipynb from docs/tutorial.md: `python tools/notebook.py`.

The page is the source. Blocks of Python become cells to run; the text between them becomes
Markdown that any notebook shows, without roles and directives of the site.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, NOTEBOOK = DOCS / "tutorial.md", DOCS / "tutorial.ipynb"

_PYTHON = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def plain(text: str) -> str:
    """Text of the page as Markdown that needs no site."""
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^!\[.*?\]\(.*?\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\{download\}`([^<`]*?)\s*<[^>]*>`", r"\1", text)
    text = re.sub(r"\[\]\(([\w/-]+\.md)\)", lambda found: f"*{title(found[1])}*", text)
    text = re.sub(r"\[([^\]]+)\]\([\w/-]+\.md\)", r"*\1*", text)
    text = re.sub(r"^```(?:console|bash)\n", "```\n", text, flags=re.MULTILINE)
    return re.sub(r"^:::\{admonition\} (.*?)\n(.*?)^:::\n", quoted, text, flags=re.M | re.S).strip()


def title(page: str) -> str:
    """The title of another page."""
    return (DOCS / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def quoted(found: re.Match[str]) -> str:
    """A box of the page as a quotation."""
    return "\n".join(f"> {line}" for line in (f"**{found[1]}**", "", *found[2].splitlines())) + "\n"


def cell(number: int, kind: str, text: str) -> dict[str, object]:
    """One cell of a notebook."""
    content = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": text.strip("\n").splitlines(keepends=True),
    }
    return content | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def notebook() -> str:
    """The page as a notebook."""
    cells: list[dict[str, object]] = []
    for place, piece in enumerate(_PYTHON.split(PAGE.read_text(encoding="utf-8"))):
        text = piece if place % 2 else plain(piece)
        if text:
            cells.append(cell(len(cells), "code" if place % 2 else "markdown", text))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(), encoding="utf-8")
    print(NOTEBOOK)
