"""One finding of a check of the data."""

from __future__ import annotations

from dataclasses import dataclass

from graphratio._utils.errors import Spelling, Words, listing, spelled
from graphratio._utils.typing import Label

_SHOWN = 3

# What helps where nodes differ in level or spread.
STANDARDIZE_NODES = "samples.standardized(by_node=[...])"


@dataclass(frozen=True)
class SampleFinding:
    """What a check of the data found.

    Attributes
    ----------
    kind : str
        "duplicates", "spike", "outliers", "scales", "node scales", "few", "stuck", "overlap",
        "seasons", "single day", "dependent rows" or "sorted rows".
    count : int
        Observations concerned; nodes for "node scales", "few" and "overlap", features for "scales".
    nodes, feature : tuple of labels, str or None
        Where it was found, if at single nodes or in one feature.
    sentence, help : str or tuple of str and Argument
        What was found, and the option that would help.
    """

    kind: str
    count: int
    nodes: tuple[Label, ...]
    feature: str | None
    sentence: Words
    help: Words

    def text(self, spelling: Spelling = str) -> str:
        """What was found; `spelling` writes arguments as an interface does."""
        return spelled(self.sentence, spelling)

    def remedy(self, spelling: Spelling = str) -> str:
        """What would help."""
        return spelled(self.help, spelling)


def at_nodes(nodes: tuple[Label, ...]) -> str:
    """Count the nodes and name the first ones."""
    count = len(nodes)
    return f"at {count:,} node{'' if count == 1 else 's'} ({listing(nodes, _SHOWN)})"
