"""Run the code on a page while the site is built, and show below each block what it gives.

Pages stay plain Markdown. A block of Python is a fence with the word python: all of them share one
namespace and are run from top to bottom. What a block prints, the value of its last line and its
figures are put below it. A comment after the block describes its figures to those who cannot see
them: <!-- alt: a map of 67 airports -->. A fence with the word console holds commands, each after
a dollar sign; those of graphratio are run. A page is run in a folder of its own, which holds the
files of docs/data, by themselves and as docs/data.
"""

import re
from pathlib import Path

from docutils import nodes
from linked_names import names_in
from page_runner import BlockFailed, Page, figures, shown
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

LOG = logging.getLogger(__name__)
_ALT = re.compile(r"^<!--\s*alt:\s*(.*?)\s*-->$", re.DOTALL)


class ShowResults(SphinxTransform):
    """Insert results below the blocks of the pages that `results_pages` names."""

    default_priority = 5

    def apply(self, **kwargs):
        """Run the page."""
        if not any(Path(self.env.docname).match(each) for each in self.config.results_pages):
            return
        source = Path(self.app.srcdir)
        folder = source / "_results" / self.env.docname
        page = Page(folder, source / "data")
        for count, block in enumerate(list(self.document.findall(nodes.literal_block)), start=1):
            language = block.get("language")
            printed, value = "", None
            try:
                if language == "console":
                    printed = page.command(block.astext())
                elif language == "python":
                    printed, value = page.run(block.astext())
                    block["linked"] = names_in(block.astext(), page.names)
            except BlockFailed as error:
                LOG.warning("%s (line %d of the block)", error, error.line, location=block)
                return
            self.insert(block, printed, shown(value), figures(folder, f"block-{count}"))

    def insert(self, block, printed, html, pictures):
        """Put the results after the block, and after the comment that describes its figures."""
        parent, place = block.parent, block.parent.index(block) + 1
        comment = parent[place] if place < len(parent) else None
        described = comment is not None and _ALT.match(comment.astext().strip())
        if pictures and not described:
            LOG.warning("a figure without <!-- alt: ... -->", location=block)
        results = []
        if printed.strip():
            text = nodes.literal_block(printed, printed.rstrip(), language="none")
            results.append(nodes.container("", text, classes=["result", block["language"]]))
        if html is not None:
            results.append(nodes.raw("", f'<div class="result table">{html}</div>', format="html"))
        for path in pictures:
            place_of = path.relative_to(self.app.srcdir).as_posix()
            text = " ".join(described[1].split()) if described else ""
            results.append(nodes.image(uri=f"/{place_of}", alt=text, classes=["result"]))
        parent.insert(place + bool(described), results)


def setup(app):
    """Pages are run when they are read, each in the process that reads it."""
    app.add_config_value("results_pages", [], "env")
    app.add_transform(ShowResults)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
