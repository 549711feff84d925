"""The page about a test: what was found, the map, and a line for every node."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import Spelling
from graphratio.report.page_file import map_data, short, write_page
from graphratio.report.significance_section import describe_test
from graphratio.report.verdicts import NodeVerdicts
from graphratio.report.words import count, number, sentence

if TYPE_CHECKING:
    from graphratio.testing import TwoSampleResult

_NONE = "\N{EN DASH}"


def write_significance(
    path: str | Path,
    test: TwoSampleResult,
    *,
    title: str = "graphratio test",
    reference_name: str = "reference",
    target_name: str = "target",
    notes: Iterable[str] = (),
    spelling: Spelling = str,
) -> Path:
    """Write the outcome of a test as one self-contained HTML file.

    Parameters
    ----------
    path : str or Path
        The file to write; an existing one is replaced.
    test : TwoSampleResult
    title, reference_name, target_name : str
        Title of the page, and names of the two samples.
    notes : iterable of str
        Sentences about the preparation of the data.
    spelling : function of an argument, optional
        Spells an argument in notes; by default as in Python.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import graphratio as gr
    >>> from graphratio.report import write_significance
    >>> rng = np.random.default_rng(0)
    >>> test = gr.two_sample_test((rng.normal(size=60), rng.normal(size=60) + 1), random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_significance(f"{folder}/tests.html", test).name
    'tests.html'
    """
    labels = [str(node) for node in test.nodes]
    verdicts = NodeVerdicts.of_test(test, test.nodes)
    described = describe_test(test, test.nodes, labels, spelling)
    untested = np.setdiff1d(np.arange(len(labels)), test.order)
    return write_page(
        path,
        "significance.html.j2",
        ("theme.js", "node_map.js", "significance.js"),
        {
            "nodes": labels,
            "map": map_data(test.graph),
            "effect": short(test.effect_size, 3),
            "verdicts": verdicts.to_json(),
        },
        title=title,
        lead=f"{count(len(labels), 'node')}, “{target_name}” compared with “{reference_name}”.",
        chance=described,
        silent=not verdicts.judged.all(),
        circled=verdicts.changed.any(),
        exploratory=test.null == "global",
        corrected=test.correction is not None,
        notes=[text for text in map(sentence, notes) if text not in described["notes"]],
        rows=[
            {
                "node": labels[v],
                "effect": number(float(test.effect_size[v]), 3) if test.tested[v] else _NONE,
                "p": number(float(test.p_value[v]), 3) if test.tested[v] else _NONE,
                "adjusted": number(float(test.adjusted_p_value[v]), 3) if test.tested[v] else _NONE,
                "extrapolated": bool(test.extrapolated[v]),
                "verdict": verdicts.words[v],
                "changed": bool(verdicts.changed[v]),
            }
            for v in (*test.order.tolist(), *untested.tolist())
        ],
    )
