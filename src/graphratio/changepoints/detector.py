"""The change-point detector: parameters, fit, predict, update, save and load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import InputError
from graphratio._utils.jobs import working
from graphratio._utils.parameters import as_generator, check_integer
from graphratio._utils.typing import FloatArray, Label, RandomState
from graphratio.changepoints import state
from graphratio.changepoints.assembling import assembled
from graphratio.changepoints.blocks_of_time import FEWEST_TIME_BLOCKS
from graphratio.changepoints.change_search import Search
from graphratio.changepoints.detector_parameters import checked_scales
from graphratio.changepoints.detector_views import DetectorViews
from graphratio.changepoints.effects import described
from graphratio.changepoints.events import ChangeEvent, Found
from graphratio.changepoints.panel import check_later, read_panel, read_step
from graphratio.changepoints.panel_features import PanelFeatures, ScoreMap, given_smoothing, look
from graphratio.changepoints.seasons import adjustment
from graphratio.changepoints.smoother import GraphSmoother, smoothing_of
from graphratio.changepoints.stretch import Lens
from graphratio.changepoints.watch import ChangeWatch, WatchSettings
from graphratio.data.graph import Graph
from graphratio.estimators.base import NodeRatioEstimator, all_or_nothing

# Searches of a panel with trends, each with slopes that account for the changes found before.
_MOST_SLOPES = 4


class GraphChangePointDetector(DetectorViews):
    """Change-points of time series on a graph: when, at which nodes, in which order, and what.

    Before and after are compared at all scales at once, from twenty steps to the whole panel, at
    every node, in neighbourhoods of the graph, and over all nodes. Changes of the mean, the spread,
    the correlation of features and the shape of the distribution are found. A panel of the same
    length in which nothing changes raises an alarm with probability `level`: the threshold comes
    from surrogate panels, blocks of time of all nodes together in random order.

    Parameters
    ----------
    window : int or (int, int or None), optional
        Most steps to compare on either side of a change, or a pair of the fewest and the most
        steps, such as (20, 100), or (20, None) for no upper limit. Default: from 10 steps to the
        whole panel.
    estimator : estimator, optional
        Any estimator of the library gives kernel, dictionary and bandwidth; RULSIF, ULSIF and
        KLIEP only kernel and bandwidth. Those that are None come from the panel, whatever the order
        of time: the bandwidth is the median distance, and the ridge 5 % of the variance of the
        features. A dictionary "coherence" becomes "uniform", since the panel is one sample. A graph
        penalty of 0, or an estimator that does not couple nodes, switches neighbourhoods off; any
        other penalty sets their size.
    level : float in (0, 1), default 0.05
        Probability of any false alarm on a panel of the same length; also the expected share of
        unchanged nodes among the nodes of an event.
    season : "auto", int or None, default "auto"
        "auto" recognises up to two rhythms and removes them at every node. An int is the period
        in steps. With None rhythms stay, and the headline warns about them.
    trend : "auto" or None, default "auto"
        "auto" removes straight trends at nodes that have one.
    memory : int, default 500
        Past steps that `update` compares with.
    n_surrogates : int, default 99
        Number of surrogate panels.
    block : int, optional
        Steps per block of the surrogates. Default: from the measured dependence, without changes.
    standardize : bool, default True
        Compare normal scores of the ranks of every feature at every node. With False the values
        are used, in one scale for all nodes.
    max_directions : int, default 5
        Largest number of principal directions of the kernel features.
    n_jobs : int, optional
        Threads, as in scikit-learn: None stands for 1, -1 for all cores. The result is the same.
    random_state : int, numpy Generator, RandomState or None
        Seed of the surrogates, and of random dictionaries.
    progress : bool, default False

    Attributes
    ----------
    events_ : list of ChangeEvent
        In the order of time. After an alarm of `update` the last one is refined for 40 steps.
    statistic_ : ndarray of shape (n_scans,)
        The largest evidence of a split at `scan_times_` in the panel of `fit`, in units of the
        threshold: an alarm is raised above 1.
    evidence_ : float
        Evidence of the last `update`, in units of its threshold; NaN if nothing was compared,
        as within 40 steps of a change.
    p_value_ : float
        Probability of as much evidence in a panel without change.
    too_short_ : bool
        Whether the panel has too few independent blocks of time to tell anything.
    periods_ : tuple of int
        Recognised or given periods, in steps.
    trend_nodes_ : tuple of labels
        Nodes with a straight trend.
    nodes_, graph_, n_times_, n_features_in_, feature_names_in_ : of the panel
    smoothing_ : tuple of float
        Strengths of smoothing over the graph, one for every size of neighbourhood.
    bandwidth_, ridge_, dictionary_, n_components_, block_ : fixed by `fit`

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> panel = rng.normal(size=(300, 6))
    >>> panel[200:, 3:] += 4.0
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> detector = gr.GraphChangePointDetector(random_state=0).fit(panel, graph)
    >>> detector.predict()
    [200, 300]
    >>> detector.headline()
    'At 200 x0 rose at 3 of 6 nodes (3, 4 and 5), by 4.1 on average.'
    """

    def __init__(
        self,
        window: int | tuple[int, int | None] | None = None,
        estimator: NodeRatioEstimator | None = None,
        level: float = 0.05,
        *,
        season: str | int | None = "auto",
        trend: str | None = "auto",
        memory: int = 500,
        n_surrogates: int = 99,
        block: int | None = None,
        standardize: bool = True,
        max_directions: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        progress: bool = False,
    ) -> None:
        self.window = window
        self.estimator = estimator
        self.level = level
        self.season = season
        self.trend = trend
        self.memory = memory
        self.n_surrogates = n_surrogates
        self.block = block
        self.standardize = standardize
        self.max_directions = max_directions
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.progress = progress

    @all_or_nothing
    def fit(
        self,
        panel: Any,
        graph: Graph | None = None,
        *,
        node: str | None = "node",
        time: str = "time",
        features: Sequence[str] | str | None = None,
        missing: str = "error",
    ) -> Self:
        """Fix features and thresholds, and find the changes in the panel.

        Parameters
        ----------
        panel : array of shape (n_times, n_nodes, n_features) or (n_times, n_nodes), or frame
            A data frame is long: one row per node and time, in any order. An array or data set of
            xarray has dimensions of times and nodes.
        graph : Graph, optional
            An array has the nodes in its order; a frame is matched by label. Default: no edges.
        node : str or None
            Column of the nodes in a frame, or their dimension. None: the frame is wide, with one
            column per node.
        time : str
            Column of the times, or their dimension; in a wide pandas frame the index, if there is
            no such column.
        features : str or sequence of str, optional
            Measured columns of a long frame, or variables of a data set; default all other numeric
            ones. With a wide frame: what its columns hold, default "value". An array takes none.
        missing : {"error", "drop"}
            "drop" leaves out missing observations, at their nodes and times only, and warns.
        """
        shortest, longest = checked_scales(self)
        rng = as_generator(self.random_state)
        read, self.graph_ = read_panel(
            panel, graph, node=node, time=time, features=features, missing=missing
        )
        n_times = len(read.values)
        if n_times < shortest:
            raise InputError(
                f"the panel has {n_times} time{'s' if n_times > 1 else ''}, fewer than the "
                f"{shortest} of the shortest comparison",
                "Pass a longer panel",
            )
        if self.season not in ("auto", None):
            check_integer(self.season, "season", low=2, high=n_times // 2)
        self.nodes_ = self.graph_.nodes
        self.feature_names_in_ = np.array(read.feature_names, dtype=object)
        self.n_features_in_ = read.values.shape[2]
        self.backend_, self.missing_ = read.backend, missing
        self.times_ = None if read.times is None else list(read.times)
        self._raw = [read.values]
        self.adjustment_ = adjustment(read.values, self.times_, self.season, self.trend)
        values = self.adjustment_(read.values)
        z = ScoreMap.of(values, standardize=self.standardize)[1]
        features_of = look(z, self.estimator, max_directions=self.max_directions, random_state=rng)
        lens = Lens(features_of, self._smoothers(features_of), self.standardize, shortest, longest)
        changes: list[int] = []
        for left in reversed(range(_MOST_SLOPES)):
            search = Search(
                values, lens, self.level, self.n_surrogates, rng, self.block, self.progress
            )
            result = search.run()
            before, changes = changes, [one.dated.step for one in result.changes]
            if not left or changes == before or not self.adjustment_.slope.any():
                break
            self.adjustment_ = self.adjustment_.given(read.values, changes)
            values = self.adjustment_(read.values)
        found = assembled(result.changes, search.stretch, result.block, self.level, n_times - 1)
        self.p_value_, self.too_short_, self.block_ = result.p_value, result.too_short, result.block
        self.statistic_, self.scan_times_ = result.curve, result.times
        settings = WatchSettings(
            lens, self.memory, self.block_, self.level, self.n_surrogates, int(rng.integers(2**31))
        )
        self._start(ChangeWatch(values, found, settings))
        return self

    def predict(self) -> list[int]:
        """Steps of the changes, followed by the number of times seen."""
        check_is_fitted(self, "graph_")
        return [*sorted({event.step for event in self.events_}), self.n_times_]

    def update(self, x_t: Any, time: Label | None = None) -> ChangeEvent | None:
        """Take in the observations of one more time.

        The last steps are compared with up to `memory` steps before them. The first update
        calibrates: 1,000 updates without change raise an alarm with probability `level`.

        Parameters
        ----------
        x_t : array of shape (n_nodes, n_features) or (n_nodes,), or mapping of label to values
            Missing values are allowed if the panel was fitted with `missing="drop"`.
        time : label
            Needed if the panel had times; later than all before.

        Returns
        -------
        event : ChangeEvent or None
            The change, when an alarm is raised, with its time and nodes as known then. `events_`
            refines them until 40 steps after the change.
        """
        check_is_fitted(self, "graph_")
        values = read_step(x_t, self.nodes_, self.n_features_in_, self.missing_)[np.newaxis]
        label = check_later(time, self.times_)
        if self.times_ is not None and label is not None:
            self.times_.append(label)
        first = self.n_times_
        self._raw.append(values)
        with working(self.n_jobs):
            found = self._watch.push(self.adjustment_(values, first))
        return None if found is None else self._event(found)

    @property
    def events_(self) -> list[ChangeEvent]:
        """The changes, in the order of time."""
        check_is_fitted(self, "graph_")
        last = self._watch.open()
        found = [*self._watch.settled, *([] if last is None else [last])]
        return [self._event(one) for one in found]

    @property
    def evidence_(self) -> float:
        """Evidence of the last update in units of the threshold; NaN if nothing was compared."""
        return self._watch.latest

    @property
    def n_times_(self) -> int:
        """Number of times seen, in `fit` and since."""
        return self._watch.n_seen

    @property
    def panel_(self) -> FloatArray:
        """All observations, shape (n_times_, n_nodes, n_features_in_); NaN where missing."""
        if len(self._raw) > 1:
            self._raw = [np.concatenate(self._raw)]
        return self._raw[0]

    @property
    def adjusted_(self) -> FloatArray:
        """`panel_` without the rhythms and trends that were removed."""
        return self._watch.values

    @property
    def periods_(self) -> tuple[int, ...]:
        """Recognised or given periods, in steps."""
        return self.adjustment_.periods

    @property
    def trend_nodes_(self) -> tuple[Label, ...]:
        """Nodes with a straight trend."""
        where = np.flatnonzero(self.adjustment_.trend.any(axis=1))
        return tuple(self.nodes_[i] for i in where)

    @property
    def n_times_needed_(self) -> int:
        """Fewest times that a search needs, given the measured dependence."""
        return FEWEST_TIME_BLOCKS * self.block_

    def save(self, path: str | Path) -> None:
        """Write the fitted detector to one file, without pickle; `load` resumes from it."""
        check_is_fitted(self, "graph_")
        state.write_detector(path, self)

    @classmethod
    def load(cls, path: str | Path) -> GraphChangePointDetector:
        """Read a detector written by `save`; updates go on where they stopped.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> from graphratio.changepoints import GraphChangePointDetector
        >>> panel = np.random.default_rng(0).normal(size=(80, 2))
        >>> detector = GraphChangePointDetector(n_surrogates=19, random_state=0).fit(panel)
        >>> path = os.path.join(tempfile.mkdtemp(), "detector.graphratio")
        >>> detector.save(path)
        >>> GraphChangePointDetector.load(path).predict() == detector.predict()
        True
        """
        return state.read(path, cls)

    def _start(self, watch: ChangeWatch) -> None:
        """Keep the running detector, with its parameters under the names of GRULSIF."""
        self._watch = watch
        features = watch.settings.lens.features
        self.bandwidth_, self.ridge_ = features.kernel_map.bandwidth, features.ridge
        self.dictionary_ = features.dictionary
        self.n_components_ = features.kernel_map.n_components

    def _smoothers(self, features: PanelFeatures) -> tuple[GraphSmoother, ...]:
        self.smoothing_ = smoothing_of(self.graph_, given_smoothing(self.estimator, features))
        return tuple(GraphSmoother(self.graph_, one) for one in self.smoothing_)

    def _event(self, found: Found) -> ChangeEvent:
        # Without rhythms and trends: they would widen spreads and hide differences.
        return described(
            found,
            self._watch.values,
            [str(name) for name in self.feature_names_in_],
            self.nodes_,
            self.label,
            self.block_,
            self.level,
        )
