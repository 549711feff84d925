"""The report's section on the test: significant nodes, their regions, and the assumptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphratio._utils.errors import Spelling, enumeration
from graphratio._utils.typing import Label
from graphratio.report.words import number, sentence
from graphratio.testing import wording

if TYPE_CHECKING:
    from graphratio.testing import TwoSampleResult

# Words for one node and for several.
Noun = tuple[str, str]

# At most this many members of a region are named.
_NAMED = 6


def describe_test(
    test: TwoSampleResult,
    nodes: tuple[Label, ...],
    names: list[str],
    spelling: Spelling = str,
    noun: Noun = ("node", "nodes"),
) -> dict[str, Any]:
    """Describe a test of the nodes of a page; the test may have them in another order.

    `found` is the headline, `meaning` its guarantee. `spelling` spells arguments in notes.
    """
    position = {node: i for i, node in enumerate(nodes)}
    regions = []
    for region in test.regions():
        if region.size > 1:
            members = [position[node] for node in region.nodes]
            text = _region_text([names[i] for i in members], region, 1 - test.level)
            text = f"{region.size:,} {noun[1]}: {text}"
            regions.append({"position": members[0], "name": names[members[0]], "text": text})
    return {
        "found": _found(test, noun),
        "meaning": _meaning(test, noun) if test.answerable else "",
        "regions": regions if test.null == "node" else [],
        "assumptions": [sentence(text) for text in test.assumptions],
        "notes": [sentence(note) for note in wording.notes(test, spelling)],
    }


def _found(test: TwoSampleResult, noun: Noun) -> str:
    if not test.answerable:
        return sentence(test.summary)
    tested = int(test.tested.sum())
    if test.null == "global":
        if test.global_p_value > test.level:
            return f"Taken together, the {noun[1]} show no significant change."
        return "Something in this network changed significantly."
    if not test.n_rejected:
        return f"None of {_counted(tested, noun)} changed significantly."
    if test.n_rejected == tested:
        which = f"All {tested:,} {noun[1]}" if tested > 1 else f"The {noun[0]}"
    else:
        which = f"{test.n_rejected:,} of {_counted(tested, noun)}"
    return f"{which} changed significantly."


def _meaning(test: TwoSampleResult, noun: Noun) -> str:
    how = f"Each {noun[0]} was tested with {test.n_permutations:,} permutations of its labels."
    if test.null == "global":
        how = f"The labels of all {noun[1]} were permuted {test.n_permutations:,} times."
    p_value = number(test.global_p_value)
    if test.null == "node" and _is_smallest(test):
        p_value = f"at most {p_value}"
        # Under a false discovery rate nodes support each other, so it depends on their number.
        if test.correction not in ("fdr", "fdr-by"):
            tested = _counted(int(test.tested.sum()), noun)
            p_value += f", the smallest that this many permutations allow for {tested}"
    overall = f"The p-value of \u201cnothing changed anywhere\u201d is {p_value}."
    if test.null == "global":
        return (
            f"{how} {overall} Single {noun[1]} are marked for exploration only: unchanged "
            "ones next to changed ones can stand out too."
        )
    share = (
        f"Among the significant {noun[1]} at most {test.level:.0%} are expected to be false alarms."
    )
    promise = {
        "fwer": f"The probability of any false alarm is at most {test.level:.0%}.",
        "fdr": share,
        "fdr-by": share,
        None: f"Every unchanged {noun[0]} is called significant with probability "
        f"{test.level:.0%}, because nothing was corrected for the number of {noun[1]}.",
    }[test.correction]
    text = f"{how} {promise} {overall}"
    if test.n_rejected == int(test.tested.sum()):
        return text
    rest = sentence(f"{noun[1]} that are not significant may have changed too")
    return f"{text} {rest}"


def _counted(number: int, noun: Noun) -> str:
    return f"{number:,} {noun[number != 1]}"


def _is_smallest(test: TwoSampleResult) -> bool:
    """Whether a node has the smallest p-value that permutations allow; a tail may give less."""
    least = float(test.p_value[test.tested].min(initial=1.0))
    return bool(np.isclose(least * (test.n_permutations + 1), 1.0))


def _region_text(names: list[str], region: Any, confidence: float) -> str:
    least = region.changed_at_least
    if least == 0:
        bound = "the test gives no lower bound on how many of them truly changed"
    else:
        many = "all of them" if least == region.size else f"at least {least}"
        bound = f"{many} truly changed, with {confidence:.0%} confidence"
    return f"{enumeration(names, limit=_NAMED)}; {bound}"
