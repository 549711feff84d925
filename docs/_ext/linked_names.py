"""Link names of the library to the reference, in running text and in blocks of code."""

import ast
import re
from importlib import import_module
from inspect import isclass, ismodule, isroutine

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

# The first home of an object is the one that the reference documents.
_HOMES = (
    "graphratio", "graphratio.datasets", "graphratio.exceptions", "graphratio.theory",
    "graphratio.testing", "graphratio.evaluation", "graphratio.changepoints",
    "graphratio.transfer", "graphratio.estimators", "graphratio.report", "graphratio.distributed",
    "graphratio.plotting",
)  # fmt: skip

# What running text calls the usual objects.
_USUAL = {
    "model": "graphratio.GraphRatio",
    "samples": "graphratio.NodeSamples",
    "graph": "graphratio.Graph",
    "detector": "graphratio.GraphChangePointDetector",
    "gr": "graphratio",
}
_CHAIN = re.compile(r"^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def _public():
    """Public objects of the library and the names that the reference gives them."""
    named = {}
    for home in _HOMES:
        module = import_module(home)
        for name in getattr(module, "__all__", dir(module)):
            found = getattr(module, name)
            if isclass(found) or isroutine(found):
                named.setdefault(found, f"{home}.{name}")
    return named


def _full_name(chain, names, public):
    """What a chain such as model.predict is called in the reference, or None."""
    first, *rest = chain.split(".")
    if first not in names:
        return None
    found = names[first]
    if not (ismodule(found) or isclass(found) or isroutine(found)) and rest:
        found = type(found)
    for place, name in enumerate(rest):
        if isclass(found):
            owner = public.get(found)
            return f"{owner}.{name}" if owner and place == len(rest) - 1 else None
        found = getattr(found, name, None) if ismodule(found) else None
    try:
        return public.get(found)
    except TypeError:  # a value that has no hash
        return None


def _chain_of(node):
    """The source of a chain of attributes of a name, or None for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def names_in(source, names):
    """Names of the library in a block of code, which has been run with `names`."""
    public, found = _public(), {}
    for node in ast.walk(ast.parse(source)):
        chain = _chain_of(node) if isinstance(node, ast.Attribute | ast.Name) else None
        full = _full_name(chain, names, public) if chain else None
        if full:
            found[chain] = full
    return found


class LinkNames(SphinxPostTransform):
    """Turn literals and blocks of code into links; pages do not link to themselves."""

    default_priority = 400
    formats = ("html",)

    def run(self, **kwargs):
        """Work on one page."""
        objects = self.env.domains.python_domain.objects
        short = {}
        for full in objects:
            last = full.rsplit(".", 1)[-1]
            if full.count(".") <= 2 and ("_" in last or not last.islower()):
                short.setdefault(last, full)
        for literal in list(self.document.findall(nodes.literal)):
            self._link_text(literal, objects, short)
        for text in list(self.document.findall(nodes.Text)):
            # Types of parameters stand in classifiers, those of results are terms of their own.
            place = text.parent
            if isinstance(place, nodes.classifier | nodes.strong | nodes.term):
                self._link_types(text, objects, short)
        for block in list(self.document.findall(nodes.literal_block)):
            if block.get("linked"):
                self._link_code(block, objects)

    def _link_text(self, literal, objects, short):
        if isinstance(literal.parent, nodes.reference) or "kbd" in literal["classes"]:
            return
        match = _CHAIN.match(literal.astext())
        chain = match[0] if match else ""
        first, _, rest = chain.partition(".")
        candidates = [chain, short.get(chain)]
        if rest and first in _USUAL:
            candidates.insert(0, f"{_USUAL[first]}.{rest}")
        elif rest and first in short:
            candidates.insert(0, f"{short[first]}.{rest}")
        for full in filter(None, candidates):
            if full in objects and objects[full].docname != self.env.docname:
                literal.replace_self(self._reference(objects[full], full, literal.deepcopy()))
                return

    def _link_types(self, text, objects, short):
        """Link the names of classes within the type of a parameter or a result."""
        pieces = []
        for piece in re.split(r"(\w+)", text.astext()):
            full = short.get(piece)
            entry = objects.get(full) if full else None
            if entry is None or entry.objtype != "class" or entry.docname == self.env.docname:
                pieces.append(nodes.Text(piece))
            else:
                pieces.append(self._reference(entry, full, nodes.Text(piece)))
        if any(isinstance(piece, nodes.reference) for piece in pieces):
            text.parent.replace(text, pieces)

    def _reference(self, entry, full, inside):
        """A link to the place of an object in the reference."""
        return make_refnode(
            self.app.builder, self.env.docname, entry.docname, entry.node_id, inside, full
        )

    def _link_code(self, block, objects):
        """Highlight the block here, and put links around the names."""
        builder = self.app.builder
        html = builder.highlighter.highlight_block(block.astext(), "python", location=block)
        for chain in sorted(block["linked"], key=len, reverse=True):
            entry = objects.get(block["linked"][chain])
            if entry is None:
                continue
            url = builder.get_relative_uri(self.env.docname, entry.docname) + f"#{entry.node_id}"
            parts = r'<span class="o">\.</span>'.join(
                rf'<span class="(?:n|nn|nc|nb)">{part}</span>' for part in chain.split(".")
            )
            html = re.sub(
                rf'(?<!<span class="o">\.</span>)(?<!">){parts}(?!</a>|<span class="o">=</span>)',
                lambda found, url=url: f'<a class="code-link" href="{url}">{found[0]}</a>',
                html,
            )
        text = f'<div class="highlight-python notranslate">{html}</div>'
        block.replace_self(nodes.raw("", text, format="html"))


def _back_to_the_reference(app, page, template, context, doctree):
    """Repair links from source code to the reference.

    An object may be documented in another module than the one that defines it; the page of the
    reference is named after the object, so its place on that page follows from the page.
    """

    def place(found):
        page, member = found[2], found[3].partition(f"{found[2].rsplit('.', 1)[-1]}.")[2]
        return f'{found[1]}{page}.html#{page}{"." + member if member else ""}"'

    if page.startswith("_modules/") and "body" in context:
        context["body"] = re.sub(
            r'(href="[./]*reference/generated/)([\w.]+?)\.html#([\w.]+)"', place, context["body"]
        )


def setup(app):
    """Links are made when pages are written, since only then all names are known."""
    app.connect("html-page-context", _back_to_the_reference, priority=900)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
