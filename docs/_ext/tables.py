"""Keep a number and its error on one line: tables get spaces that do not break around ±."""

import re

_IN_A_TABLE = re.compile(r"^\|.* ± .*$", re.MULTILINE)


def together(app, docname, source):
    """Change the text of a page before it is read."""
    source[0] = _IN_A_TABLE.sub(lambda row: row[0].replace(" ± ", "\u00a0±\u00a0"), source[0])


def setup(app):
    """Pages are changed one by one."""
    app.connect("source-read", together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
