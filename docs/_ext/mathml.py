"""Formulas as MathML, which browsers draw themselves, in a font that the site brings along."""

import re

from docutils import nodes
from latex2mathml.converter import convert


def mathml(text, display):
    """MathML of a formula, with what the converter leaves open."""
    # It shows the backslash of an underscore within text.
    text = re.sub(r"\\texttt\{[^}]*\}", lambda found: found[0].replace(r"\_", "_"), text)
    made = convert(text, display=display)
    # Without a partner in the same row, the bars of a norm grow as tall as the whole formula.
    return re.sub(r"<mo[^>]*>(&#x0?2016;|‖|∥)</mo>", r'<mo stretchy="false">&#x2016;</mo>', made)


def inline(writer, node):
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def display(writer, node):
    writer.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
