"""Checks of the data before anything is fitted: what deserves a look, where, and what would help.

No check changes the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphratio._utils.errors import Spelling, listing
from graphratio._utils.html import rows_table, titled
from graphratio.data import time_checks, value_checks
from graphratio.data.finding import SampleFinding

if TYPE_CHECKING:
    from graphratio.data.samples import NodeSamples
    from graphratio.data.scaling import Scaling

_SHOWN = 3


@dataclass(frozen=True, repr=False)
class DataChecks:
    """The result of `NodeSamples.check`: a list of findings, empty if nothing was found.

    Attributes
    ----------
    findings : tuple of SampleFinding
        Each has `kind`, `count`, `nodes`, `feature`, and `text()` and `remedy()` in words.

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> reference, target = rng.normal(5, 1, size=(2, 4, 60))
    >>> target[1, ::3] = 0.0
    >>> samples = gr.NodeSamples.from_arrays(list(reference), list(target), feature_names=["flow"])
    >>> samples.check()
    1 finding:
      the value 0 makes up 17 % of 'flow' at 1 node (1): does it stand for a missing value?
        Replace it by NaN and pass missing="drop".
    """

    findings: tuple[SampleFinding, ...]

    def __iter__(self) -> Iterator[SampleFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def sentences(self, spelling: Spelling = str, *, without: tuple[str, ...] = ()) -> list[str]:
        """Sentences for the findings, except of some kinds, with arguments as spelled."""
        found = []
        for finding in self.findings:
            if finding.kind not in without:
                text = finding.text(spelling)
                end = "" if text.endswith("?") else "."
                found.append(f"{text}{end} {finding.remedy(spelling)}")
        return found

    def __repr__(self) -> str:
        if not self.findings:
            return "no findings"
        count = len(self.findings)
        lines = [f"{count} finding{'' if count == 1 else 's'}:"]
        for finding in self.findings:
            lines += [f"  {finding.text()}", f"    {finding.remedy()}."]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Table for notebooks."""
        if not self.findings:
            return titled("no findings")
        body = [
            (finding.text(), f"{finding.count:,}", listing(finding.nodes, _SHOWN), finding.remedy())
            for finding in self.findings
        ]
        return titled("data checks", rows_table(("finding", "count", "nodes", "what helps"), body))


def checks_before(samples: NodeSamples, scaling: Scaling | None) -> DataChecks:
    """Check samples that a fit transforms, without advising a logarithm that it takes."""
    found = samples.check()
    if scaling is not None:
        own = {samples.feature_names[j] for j in np.flatnonzero(scaling.own_mask)}
        kept = [each for each in found if each.kind != "node scales" or each.feature not in own]
        found = DataChecks(tuple(kept))
    if scaling is None or scaling.log is None:
        return found
    logged = [samples.feature_names[j] for j in np.flatnonzero(scaling.log)]
    again = samples.standardized(log=logged, standardize=False).check()
    # The scale that counts for these is that of the fit.
    scaled = {("outliers", name) for name in logged}
    scaled |= {("node scales", name) for name in logged if name not in own}
    kept = [each for each in found if (each.kind, each.feature) not in scaled]
    kept += [each for each in again if (each.kind, each.feature) in scaled]
    return DataChecks(tuple(kept))


def check_samples(samples: NodeSamples) -> DataChecks:
    """Run all checks, the gravest first."""
    ordered = value_checks.sorted_samples(samples)
    found = [each for rule in value_checks.VALUE_RULES for each in rule(samples, ordered)]
    found += [each for rule in time_checks.TIME_RULES for each in rule(samples)]
    return DataChecks(tuple(found))
