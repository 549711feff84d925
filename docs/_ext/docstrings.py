"""Docstrings are plain text: names that end in an underscore are no links, bars no markup."""

import re

_NAME = re.compile(r"(?<![\\`*:\w])([A-Za-z]\w*)_(?=[\s,.;:)\]]|$)")
_BAR = re.compile(r"(?<![\\`])\|")


def as_plain_text(app, what, name, obj, options, lines):
    """Escape in place, outside of examples and literal blocks."""
    literal = example = False
    margin = 0
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal and line.strip() and indent <= margin:
            literal = False
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not literal and not example:
            text = _NAME.sub(r"\1\\_", line)
            lines[i] = text if text.strip().endswith("|") else _BAR.sub(r"\\|", text)
            if line.rstrip().endswith("::"):
                literal, margin = True, indent


def setup(app):
    """After numpydoc, which works at the default priority."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", as_plain_text, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
