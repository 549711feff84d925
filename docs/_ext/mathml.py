"""Formulas as MathML, which browsers draw themselves: no script, no font to fetch."""

from docutils import nodes
from latex2mathml.converter import convert


def inline(writer, node):
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(writer, node):
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
