"""The first sentence of the report, the counts beside it, and the colours of the map."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import graphratio as gr
from graphratio.exceptions import InputError
from graphratio.report import write_report
from graphratio.report.divergence_scale import DivergenceScale
from graphratio.report.headline import _capital, direction_of, page_headline, page_words
from graphratio.report.node_table import Subject
from graphratio.report.significance_section import describe_test
from graphratio.report.summary import what_changed
from graphratio.report.verdicts import CANNOT_SAY, CHANGED, NOT_FOUND, NodeVerdicts

WORDS = {"noun": ("station", "stations"), "units": {"x0": "mm"}}


def subject_of(shifts, scales=None, n=80, n_features=1):
    """Nodes a, b, ... on a path; the last feature is shifted and scaled."""
    rng = np.random.default_rng(0)
    names = [chr(ord("a") + i) for i in range(len(shifts))]
    reference = {node: rng.normal(10, 1, size=(n, n_features)) for node in names}
    target = {}
    for node, shift, scale in zip(names, shifts, scales or [1.0] * len(names), strict=True):
        target[node] = rng.normal(10, 1, size=(n, n_features))
        target[node][:, 0] = 10 + shift + scale * rng.normal(size=n)
    samples = gr.NodeSamples.from_arrays(reference, target)
    graph = gr.Graph.from_edges(list(itertools.pairwise(names)), nodes=names)
    model = gr.GRULSIF(prior_ratio=1.0, random_state=0).fit(samples, graph)
    return Subject.of(model, samples)


def verdicts_of(subject, test=None):
    if test is not None:
        return NodeVerdicts.of_test(test, subject.model.nodes_)
    divergence = subject.model.divergence_
    return NodeVerdicts.of_size(divergence, DivergenceScale.of(divergence, 0.1, "Pearson"))


def said(subject, test=None, **options):
    words = page_words(("winter", "summer"), **{**WORDS, **options}, samples=subject.samples)
    return page_headline(subject, verdicts_of(subject, test), words)


def judged_by(subject, **options):
    return gr.two_sample_test(
        subject.samples, subject.model.graph_, random_state=0, correction="fwer", **options
    )


def test_one_direction_is_the_verb():
    subject = subject_of([2.0, 2.5, 0.0, 0.0])
    text = said(subject)
    assert text.startswith("x0 rose at 2 of 4 stations from winter to summer, most at b and a (+")
    assert text.endswith(" mm).")
    assert said(subject_of([-2.0] * 3)).startswith("x0 fell at all 3 stations")


def test_two_directions_are_told_apart():
    text = said(subject_of([2.0, 2.0, 2.0, -2.0]))
    assert text.startswith("x0 rose at 3 of 4 stations from winter to summer")
    assert text.endswith("; 1 went the other way.")


def test_noise_of_a_mean_has_no_direction():
    """A third of a standard deviation is two thirds of a standard error of 8 observations."""
    subject = subject_of([0.0, 0.0], n=8)
    spread = np.ones((2, 2, 1))
    for change, told in ((0.35, "changed in shape or spread"), (1.2, "x0 rose at all 2 stations")):
        own = replace(subject, change=np.full((2, 1), change), spread=spread)
        verdicts = NodeVerdicts(np.array([CHANGED] * 2), "test", ["changed"] * 2, np.zeros(2))
        words = page_words(("winter", "summer"), **WORDS, samples=subject.samples)
        assert told in page_headline(own, verdicts, words)


def test_a_constant_that_moves_has_a_direction():
    rng = np.random.default_rng(0)
    samples = gr.NodeSamples.from_arrays(
        {"a": np.full(30, 7.0), "b": rng.normal(size=30)},
        {"a": np.full(30, 8.0), "b": rng.normal(size=30)},
        feature_names=["x0"],
    )
    model = gr.Pool(random_state=0).fit(samples)
    subject = Subject.of(model, samples)
    test = gr.two_sample_test(samples, None, random_state=0)
    text = said(subject, test)
    assert text == "x0 rose at 1 of 2 stations from winter to summer: a (+1 mm)."
    words = page_words(("winter", "summer"), **WORDS, samples=samples)
    assert what_changed(subject, np.array([0]), words) == "mean of x0 from 7 to 8 mm"


def test_the_amount_of_a_constant_is_its_own():
    subject = subject_of([0.0, 0.0, 0.0])
    mean, spread = subject.mean.copy(), subject.spread.copy()
    mean[1], spread[1] = [[5.0], [4.5]], 0.0
    change = np.where(np.arange(3)[:, np.newaxis] == 1, -0.04, subject.change)
    moved = replace(subject, mean=mean, spread=spread, change=change)
    words = page_words(("winter", "summer"), **WORDS, samples=subject.samples)
    verdicts = NodeVerdicts(
        np.array([NOT_FOUND, CHANGED, NOT_FOUND]), "test", [""] * 3, np.zeros(3)
    )
    text = page_headline(moved, verdicts, words)
    assert text == "x0 fell at 1 of 3 stations from winter to summer: b (\u22120.5 mm)."


def test_a_large_offset_hides_no_direction():
    """Seconds since 1970 with a spread of a second."""
    rng = np.random.default_rng(0)
    reference, target = 1.7e9 + 1.5 * rng.normal(size=(2, 6, 200))
    samples = gr.NodeSamples.from_arrays(list(reference), list(target + 1.5), feature_names=["x0"])
    subject = Subject.of(gr.Pool(random_state=0).fit(samples.standardized()), samples)
    assert said(subject, gr.two_sample_test(samples, random_state=0)).startswith(
        "x0 rose at all 6 stations"
    )


def test_noise_of_one_feature_is_no_other_way():
    """Far in the west x0 falls; in the east x1 rises, and x0 stays as it was."""
    rng = np.random.default_rng(4)
    reference, target = rng.normal(size=(2, 40, 60, 2))
    target[:11, :, 0] -= 3.0
    target[24:, :, 1] += 1.0
    samples = gr.NodeSamples.from_arrays(list(reference), list(target), feature_names=["x0", "x1"])
    graph = gr.Graph.from_edges([(i, i + 1) for i in range(39)])
    model = gr.GRULSIF(bandwidth=1.5, graph_penalty=0.03, ridge=0.03, random_state=0)
    subject = Subject.of(model.fit(samples, graph), samples)
    text = said(subject, judged_by(subject))
    # Chance takes one of the 16 for one that fell: its own mean is two standard errors lower.
    assert text.startswith("x0 fell at 12 of 40 stations")
    assert text.endswith("; x1 rose at 15 others.")


def test_neither_neighbours_nor_rounding_nor_one_observation_move_a_constant():
    subject = subject_of([0.0, 0.0])
    words = page_words(("winter", "summer"), **WORDS, samples=subject.samples)
    verdicts = NodeVerdicts(np.array([CHANGED] * 2), "test", ["changed"] * 2, np.zeros(2))
    mean = np.full((2, 2, 1), 7.0)
    mean[:, 1] += 1e-12
    fixed = replace(subject, mean=mean, spread=np.zeros((2, 2, 1)), change=np.full((2, 1), 0.5))
    assert "changed in shape or spread" in page_headline(fixed, verdicts, words)
    told = what_changed(fixed, np.array([0]), words)
    assert told == "a change of shape more than of mean or spread"
    alone = gr.NodeSamples.from_arrays({"a": [1.0], "b": [1.0]}, {"a": [2.0], "b": [1.0]})
    once = Subject.of(gr.Pool(bandwidth=1.0, ridge=1.0).fit(alone), alone)
    words = page_words(("winter", "summer"), WORDS["noun"], None, alone)
    assert "changed in shape or spread" in page_headline(once, verdicts, words)


def test_a_change_of_spread_has_no_direction():
    subject = subject_of([0.0, 0.0, 0.0], scales=[3.0, 3.0, 1.0])
    text = said(subject, judged_by(subject))
    assert text.startswith("The spread of x0 grew at 2 of 3 stations from winter to summer")
    assert ", typically from 0.96 to 2.7 mm, most at " in text
    single = subject_of([0.0, 0.0, 0.0], scales=[1.0, 0.3, 1.0])
    text = said(single, judged_by(single))
    assert text.startswith("The spread of x0 shrank at 1 of 3 stations from winter to summer, from")
    assert text.endswith(" mm at b.")
    mixed = subject_of([2.0, 2.0, 0.0], scales=[1.0, 1.0, 3.0])
    assert said(mixed, judged_by(mixed)).endswith("; 1 changed in shape or spread.")


def test_the_feature_that_changed_most_is_named():
    subject = subject_of([2.0, 2.0], n_features=3)
    assert said(subject).startswith("x0 rose at all 2 stations")


def test_nothing_changed():
    subject = subject_of([0.0, 0.0, 0.0])
    assert said(subject) == "No clear change was found at any of 3 stations."
    beyond = "No significant change was found at any of 3 stations."
    assert said(subject, judged_by(subject)) == beyond


def test_a_single_node():
    subject = subject_of([2.0])
    text = said(subject)
    assert text.startswith("x0 rose at the station from winter to summer by +")
    quiet = said(subject_of([0.0]))
    assert quiet == "No clear change was found at the station."


def test_names_of_features_keep_their_spelling():
    assert [_capital(text) for text in ("ground speed rose", "pH fell", "pm25 rose", "x fell")] == [
        "Ground speed rose",
        "pH fell",
        "pm25 rose",
        "x fell",
    ]


def test_nodes_that_cannot_be_judged_are_no_part_of_the_count():
    state = np.array([CHANGED, NOT_FOUND, CANNOT_SAY])
    words = page_words(("winter", "summer"), ("well", "wells"), None, subject_of([0.0]).samples)

    def judged(*states):
        return words.judged(NodeVerdicts(state[list(states)], "test", [], np.array([])))

    assert judged(0, 1, 1) == "3 wells"
    assert judged(0, 1, 2) == "2 judged wells"
    assert judged(0, 2, 2) == "the only judged well"
    assert judged(0) == "the well"


def test_data_that_cannot_say():
    subject = subject_of([2.0, 2.0], n=2)
    assert said(subject, judged_by(subject)) == "These data cannot say whether anything changed."


def test_counts_add_up_and_say_how_sure_they_are():
    subject = subject_of([2.0, 2.0, 0.0])
    test = judged_by(subject)
    tiles = verdicts_of(subject, test).tiles(test)
    assert [(tile["value"], tile["label"]) for tile in tiles] == [
        ("2", "changed"),
        ("1", "no change found"),
    ]
    assert tiles[0]["note"] == "at most 5% chance that any of them is a false alarm"
    assert "standard deviations would have been found" in tiles[1]["note"]
    few = subject_of([2.0, 2.0], n=2)
    test = judged_by(few)
    (open_,) = verdicts_of(few, test).tiles(test)
    assert (open_["value"], open_["label"]) == ("2", "cannot say")


def test_that_nothing_changed_is_counted_and_that_everything_did_is_enough():
    unchanged = subject_of([0.0, 0.0])
    test = judged_by(unchanged)
    none, rest = verdicts_of(unchanged, test).tiles(test)
    assert (none["value"], none["label"], none["note"]) == ("0", "changed", "")
    assert (rest["value"], rest["label"]) == ("2", "no change found")
    later = "may have changed too"
    assert later in describe_test(test, test.nodes, ["a", "b"])["meaning"]
    changed = subject_of([2.0, 2.0])
    test = judged_by(changed)
    (every,) = verdicts_of(changed, test).tiles(test)
    assert (every["value"], every["label"]) == ("2", "changed")
    assert later not in describe_test(test, test.nodes, ["a", "b"])["meaning"]


def test_verdicts_follow_the_order_of_the_model():
    subject = subject_of([2.0, 0.0, 0.0])
    test = gr.two_sample_test(subject.samples.subset(nodes=["c", "b", "a"]), random_state=0)
    assert verdicts_of(subject, test).changed.tolist() == [True, False, False]


def test_a_test_of_all_nodes_together_only_explores():
    subject = subject_of([2.0, 2.0, 0.0, 0.0])
    options = {"null": "global", "n_permutations": 199, "random_state": 0}
    test = gr.two_sample_test(subject.samples, subject.model.graph_, **options)
    text = said(subject, test)
    assert text.startswith("Something changed significantly. It looks as if x0 rose at ")
    assert verdicts_of(subject, test).tiles(test)[0]["label"] == "stand out"
    quiet = subject_of([0.0] * 4)
    test = gr.two_sample_test(quiet.samples, quiet.model.graph_, **options)
    assert test.global_p_value > 0.05
    assert said(quiet, test) == "No significant change was found at any of 4 stations."


def test_colours_have_a_direction_with_one_feature_only():
    subject = subject_of([2.0, -2.0])
    words = page_words(("a", "b"), **WORDS, samples=subject.samples)
    found = direction_of(subject, verdicts_of(subject), words)
    assert found["change"][0] > 1.5
    assert found["change"][1] < -1.5
    assert found["unit"] == "mm"
    several = subject_of([2.0, 2.0], n_features=2)
    assert direction_of(several, verdicts_of(several), words) is None
    spread = subject_of([0.0, 0.0, 0.0], scales=[3.0, 3.0, 1.0])
    assert direction_of(spread, verdicts_of(spread, judged_by(spread)), words) is None


def test_the_scale_of_the_map_shows_the_nodes_that_changed_and_leaves_noise_pale():
    words = page_words(("a", "b"), **WORDS, samples=subject_of([0.0]).samples)
    quiet = subject_of([0.0, 0.0, 0.0])
    found = direction_of(quiet, verdicts_of(quiet, judged_by(quiet)), words)
    # Three standard errors of a change, of two means of 80 observations each.
    assert found["largest"] == pytest.approx(3 * np.sqrt(2 / 80), rel=0.2)
    assert found["clipped"] == 0
    one = subject_of([0.0] * 25 + [6.0])
    found = direction_of(one, verdicts_of(one, judged_by(one)), words)
    assert found["largest"] == pytest.approx(6.0, abs=0.5)
    assert found["clipped"] == 0
    # A node that is not called changed shares the last colour.
    none = NodeVerdicts(np.full(26, NOT_FOUND), "test", [""] * 26, np.zeros(26))
    found = direction_of(one, none, words)
    assert found["largest"] < 4
    assert found["clipped"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noun": "station"}, "noun must be two words"),
        ({"units": {"speed": "mph"}}, "a unit was given for 'speed'"),
    ],
)
def test_words_that_cannot_be(options, message, tmp_path):
    subject = subject_of([2.0, 2.0])
    with pytest.raises(InputError, match=message):
        write_report(tmp_path / "r.html", subject.model, subject.samples, **options)


def test_amounts_have_the_same_decimals_and_equal_ones_no_place_where_they_are_largest():
    constant = {node: np.full(30, 5.0) for node in "abcd"}
    for after, told in (
        ([6.0, 6.0, 6.0, 6.0], "all 4 stations from winter to summer, by +1 mm."),
        ([6.0, 6.0, 5.0, 5.0], "2 of 4 stations from winter to summer: a and b (+1 mm)."),
        ([14.0, 13.7, 5.0, 5.0], ", most at a and b (+8.7 to +9.0 mm)."),
    ):
        moved = {node: np.full(30, value) for node, value in zip("abcd", after, strict=True)}
        samples = gr.NodeSamples.from_arrays(constant, moved, feature_names=["x0"])
        subject = Subject.of(gr.Pool(random_state=0).fit(samples), samples)
        test = gr.two_sample_test(samples, None, random_state=0)
        assert said(subject, test).endswith(told)
