"""What crosses the border of a partition: no observations but candidates, or none; few bytes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.distributed.problems import FIXED, arrays_in, assert_no_observation_in, loader_of, ring

import graphratio as gr
from graphratio.distributed import LocalEngine


def bytes_of(message):
    return sum(array.nbytes for array in arrays_in(message.payload))


@pytest.fixture(scope="module")
def run():
    """A fit with a selection on 3 partitions that load their data themselves."""
    samples, graph = ring(18, n_features=3)
    messages = []
    engine = LocalEngine(3, loader=loader_of(samples), observe=messages.append, checkpoint_every=4)
    model = gr.GRULSIF(
        bandwidth=[1.0, 2.0],
        graph_penalty=[0.18, 1.8],
        ridge=[0.0018, 0.18],
        cv=2,
        tol=1e-9,
        random_state=0,
        engine=engine,
    ).fit(None, graph)
    return samples, model, messages


def test_observations_travel_only_as_candidates(run):
    """Observations are random numbers, so an equal number in a message is one of them."""
    samples, model, messages = run
    observed = np.unique(samples.values)
    leaving = {"uncovered"}
    # What the driver tells about the dictionary on its way back to the partitions.
    telling = {"uncovered", "moment_of_rows", "set_features", "divergences"}
    carried = 0
    for message in messages:
        found = any(
            np.isin(array, observed).any()
            for array in arrays_in(message.payload)
            if array.dtype.kind == "f"
        )
        if found:
            carried += 1
            assert message.method in (leaving if message.outgoing else telling), message.method
    assert carried
    sent = [m for m in messages if m.method == "uncovered" and m.outgoing]
    rows = np.concatenate([m.payload[0][0] for m in sent])
    # Incoming messages have nothing but atoms of the dictionary.
    atoms = {tuple(atom) for atom in model.dictionary_}
    assert atoms <= {tuple(row) for row in rows}
    for message in messages:
        if not message.outgoing and message.method in telling:
            for array in arrays_in(message.payload):
                if array.ndim == 2 and array.shape[1] == 3 and np.isin(array, observed).any():
                    assert {tuple(row) for row in array} <= atoms


@pytest.mark.parametrize(
    "dictionary",
    [
        {"dictionary": "centres", "group_size": 6},
        {"dictionary": "quasi-random", "bounds": [(-4, 5)] * 3},
    ],
    ids=lambda dictionary: dictionary["dictionary"],
)
def test_no_observation_travels(dictionary):
    """With these dictionaries no number in any message, out or in, is one of an observation."""
    samples, graph = ring(18, n_features=3)
    messages = []
    engine = LocalEngine(3, loader=loader_of(samples), observe=messages.append)
    settings = {"bandwidth": [1.0, 2.0], "graph_penalty": 0.18, "ridge": [0.0018, 0.18], "cv": 2}
    model = gr.GRULSIF(**settings, **dictionary, random_state=0, engine=engine).fit(None, graph)
    assert_no_observation_in(messages, samples, least=10_000)
    assert model.n_atoms_ > 10
    one = gr.GRULSIF(**settings, **dictionary, random_state=0).fit(samples, graph)
    assert_array_equal(model.dictionary_, one.dictionary_)


def test_candidates_that_are_covered_stay(run):
    """Fewer candidates travel than the node stage keeps."""
    samples, graph = ring(18, n_features=1)
    messages = []
    engine = LocalEngine(3, observe=messages.append)
    gr.GRULSIF(**FIXED, engine=engine).fit(samples, graph)
    kept = sum(m.payload[0] for m in messages if m.method == "filter_nodes" and m.outgoing)
    first = next(m for m in messages if m.method == "uncovered" and m.outgoing)
    assert kept < samples.n_observations
    assert len(first.payload[0][0]) <= kept


def iteration_bytes(messages):
    """Bytes of every iteration, and the number of its candidates and of its features."""
    total, shapes = [], []
    for message in messages:
        if message.method == "conjugate.direction" and not message.outgoing:
            coarse = message.payload[1]["coarse"]
            if message.partition == 0:
                total.append(0)
                shapes.append(coarse.shape)
        if message.method in ("conjugate.direction", "conjugate.advance") and total:
            total[-1] += bytes_of(message)
    return total, shapes


def test_bytes_of_an_iteration(run):
    """Boundary rows twice, to the driver and on, and per partition a few sums."""
    _, model, messages = run
    boundary = model.solution_.boundary_rows
    totals, shapes = iteration_bytes(messages)
    assert len(totals) > 20
    n_partitions = 3
    for k in range(1, len(totals)):
        modes, candidates, m = shapes[k]
        before = shapes[k - 1][1]
        rows = boundary * m * 8 * (max(before, candidates) + candidates)
        # Low modes out and back; R'R, R'Z, P'Q, two ratios, and who goes on.
        sums = n_partitions * (2 * modes * m * 8 * candidates + 5 * 8 * candidates + before)
        assert totals[k] <= rows + sums
    # The bound is not idle: in double precision it is reached to the last byte.
    modes, candidates, m = shapes[-1]
    assert candidates == 1
    assert totals[-1] == boundary * m * 8 * 2 + n_partitions * (2 * modes * m * 8 + 5 * 8)


def test_no_message_grows_with_the_observations():
    """Ten times as many observations: iterations send the same, to the byte."""
    seen = []
    for n in (20, 200):
        rng = np.random.default_rng(0)
        graph = gr.Graph.from_edges([(i, i + 1) for i in range(11)])
        draw = rng.normal(size=(2, 12, n, 1))
        messages = []
        gr.GRULSIF(
            bandwidth=1.0,
            graph_penalty=1.2,
            ridge=0.12,
            dictionary=np.linspace(-2, 2, 7)[:, None],
            engine=LocalEngine(3, observe=messages.append),
        ).fit((draw[0], draw[1]), graph)
        totals, _ = iteration_bytes(messages)
        most = max(bytes_of(m) for m in messages)
        seen.append((totals[-1], most))
    assert seen[0] == seen[1]
