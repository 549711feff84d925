"""Every name in the reference exists where the page says."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"


def listed():
    """Module of the page and the names in its lists."""
    for page in sorted(PAGES.glob("*.rst")):
        text = page.read_text(encoding="utf-8")
        module = re.search(r"currentmodule:: (\S+)", text)
        for block in re.findall(r"\.\. autosummary::\n((?: {3}.*\n|\n)+)", text):
            names = re.findall(r"^ {3}([A-Za-z_][\w.]*)$", block, re.MULTILINE)
            yield from ((module[1], name) for name in names)


@pytest.mark.parametrize(("module", "name"), sorted(set(listed())))
def test_the_name_exists(module, name):
    *parts, last = f"{module}.{name}".split(".")
    owner = import_module(parts[0])
    for i, part in enumerate(parts[1:], start=2):
        owner = getattr(owner, part, None) or import_module(".".join(parts[:i]))
    assert hasattr(owner, last)


def test_the_pages_list_many_names():
    assert len(set(listed())) > 50
