"""The change-point detector: parameters, fit, predict, update, save and load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.errors import Argument, InputError
from graphratio._utils.parameters import as_generator, check_integer, check_real
from graphratio._utils.threads import suitable_threads
from graphratio._utils.typing import FloatArray, IntArray, Label, RandomState
from graphratio.changepoints import state
from graphratio.changepoints.events import ChangeEvent, Found
from graphratio.changepoints.panel import check_later, read_panel, read_step
from graphratio.changepoints.panel_features import PanelFeatures, look
from graphratio.changepoints.smoother import Smoother
from graphratio.changepoints.stream import calibrated_stream
from graphratio.changepoints.windows import scan_times
from graphratio.data import frames
from graphratio.data.graph import Graph
from graphratio.estimators.base import NodeRatioEstimator, all_or_nothing
from graphratio.estimators.contract import check_estimator

# Fewest windows of a panel: fewer do not show how windows vary.
FEWEST_WINDOWS = 4


class GraphChangePointDetector(BaseEstimator):
    """Change-points of time series on a graph: when, at which nodes, and in which order.

    Two windows of equal length, reference and target, slide over the panel. At every time the
    ratio of the two is estimated at all nodes together, as in GRULSIF, and its size is compared
    with a threshold. A panel of the same length in which nothing changes exceeds the threshold
    with probability `level`. The threshold comes from surrogate panels: blocks of time, of all
    nodes together, in random order.

    Any change of the distributions is found, not only of the mean. Remove trends and seasons
    first: they are changes too.

    Parameters
    ----------
    window : int
        Steps of each window. Long windows find small changes. Two changes at the same nodes
        should be at least a window apart; those within a window of the ends are not found.
    step : int, default 1
        Evaluate every `step` time points.
    estimator : estimator, optional
        Any estimator of the library gives kernel, dictionary, bandwidth and penalties; RULSIF,
        ULSIF and KLIEP only kernel and bandwidth. Those that are None come from the first two
        windows, whatever the order of time: the bandwidth is the median distance, the ridge 1 %
        and the pull along the edges 10 % of the variance of the features, without pull if the
        estimator does not couple nodes. Nothing else is used: alpha is 1/2, so that the mixture is
        the pool of the two windows.
    level : float in (0, 1), default 0.05
        Probability of any false alarm on a panel of the same length; also the expected share of
        unchanged nodes among the nodes of an event.
    n_surrogates : int, default 99
    block : int, optional
        Steps per block of the surrogates. Default: 1 if no autocorrelation is visible, else 8
        times the longest lag at which it is, at most a window.
    standardize : bool, default True
        Standardise every feature of every node by the first two windows.
    max_directions : int, default 12
        Largest number of principal directions of the kernel features.
    random_state : int, numpy Generator, RandomState or None
        Seed of the surrogates, and of random dictionaries.
    progress : bool, default False

    Attributes
    ----------
    events_ : list of ChangeEvent
        In the order of time. The last one may still be refined while its alarm lasts.
    statistic_ : ndarray of shape (n_scans,)
        The scan in units of the threshold, at `scan_times_`: an alarm is raised above 1.
    p_value_ : float
        Probability of a scan as high as that of `fit` if nothing changes.
    nodes_, graph_, n_times_, n_features_in_, feature_names_in_ : of the panel
    bandwidth_, graph_penalty_, ridge_, dictionary_, n_components_, block_ : fixed by `fit`

    Examples
    --------
    >>> import numpy as np
    >>> import graphratio as gr
    >>> rng = np.random.default_rng(0)
    >>> panel = rng.normal(size=(300, 6))
    >>> panel[200:, 3:] += 4.0
    >>> graph = gr.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> detector = gr.GraphChangePointDetector(window=25, random_state=0).fit(panel, graph)
    >>> detector.predict()
    [200, 300]
    >>> detector.events_[0].nodes
    (3, 4, 5)
    """

    def __init__(
        self,
        window: int,
        step: int = 1,
        estimator: NodeRatioEstimator | None = None,
        level: float = 0.05,
        *,
        n_surrogates: int = 99,
        block: int | None = None,
        standardize: bool = True,
        max_directions: int = 12,
        random_state: RandomState = None,
        progress: bool = False,
    ) -> None:
        self.window = window
        self.step = step
        self.estimator = estimator
        self.level = level
        self.n_surrogates = n_surrogates
        self.block = block
        self.standardize = standardize
        self.max_directions = max_directions
        self.random_state = random_state
        self.progress = progress

    @all_or_nothing
    def fit(
        self,
        panel: Any,
        graph: Graph | None = None,
        *,
        node: str = "node",
        time: str = "time",
        features: Sequence[str] | str | None = None,
        missing: str = "error",
    ) -> Self:
        """Fix features and thresholds, and find the changes in the panel.

        Parameters
        ----------
        panel : array of shape (n_times, n_nodes, n_features) or (n_times, n_nodes), or frame
            A data frame is long: one row per node and time, in any order.
        graph : Graph, optional
            An array has the nodes in its order; a frame is matched by label. Default: no edges.
        node, time : str
            Columns of a frame.
        features : str or sequence of str, optional
            Measured columns of a frame; default all other numeric ones.
        missing : {"error", "drop"}
            "drop" leaves out every time at which some node lacks a value, and warns.
        """
        self._check_parameters()
        rng = as_generator(self.random_state)
        read, self.graph_ = read_panel(
            panel, graph, node=node, time=time, features=features, missing=missing
        )
        n_times = len(read.values)
        if n_times < FEWEST_WINDOWS * self.window:
            raise InputError(
                f"the panel has {n_times} times, fewer than {FEWEST_WINDOWS} windows of "
                f"{self.window}",
                f"Pass a longer panel, or a window of at most {n_times // FEWEST_WINDOWS}",
            )
        self.nodes_ = self.graph_.nodes
        self.feature_names_in_ = np.array(read.feature_names, dtype=object)
        self.n_features_in_ = read.values.shape[2]
        self.backend_ = read.backend
        self.times_ = None if read.times is None else list(read.times)
        self._values = [read.values]
        with suitable_threads(read.values[:, :, 0].size, self.max_directions):
            self._watch(
                look(
                    read.values[: 2 * self.window],
                    self.graph_,
                    self.estimator,
                    standardize=self.standardize,
                    max_directions=self.max_directions,
                    random_state=rng,
                )
            )
            self._stream = calibrated_stream(
                self.features_(read.values),
                self._smoother(),
                window=self.window,
                step=self.step,
                block=self.block,
                level=self.level,
                n_surrogates=self.n_surrogates,
                random_state=rng,
                progress=self.progress,
            )
        self.p_value_ = self._stream.calibration.p_value(max(self._stream.statistic))
        return self

    def predict(self) -> list[int]:
        """Steps of the changes, followed by the number of times seen."""
        check_is_fitted(self, "graph_")
        return [*sorted({event.step for event in self.events_}), self.n_times_]

    def update(self, x_t: Any, time: Label | None = None) -> ChangeEvent | None:
        """Take in the observations of one more time.

        A stretch as long as the panel of `fit` has a false alarm with probability `level`.

        Parameters
        ----------
        x_t : array of shape (n_nodes, n_features) or (n_nodes,), or mapping of label to values
        time : label
            Needed if the panel had times; later than all before.

        Returns
        -------
        event : ChangeEvent or None
            The change, when an alarm is raised, with its time and nodes as known then. `events_`
            refines them until a window after the peak of the scan.
        """
        check_is_fitted(self, "graph_")
        values = read_step(x_t, self.nodes_, self.n_features_in_)
        label = check_later(time, self.times_)
        if self.times_ is not None and label is not None:
            self.times_.append(label)
        self._values.append(values[np.newaxis])
        with suitable_threads(values.size, self.max_directions):
            found = self._stream.push(self.features_(values[np.newaxis])[:, 0])
        return None if found is None else self._event(found)

    @property
    def events_(self) -> list[ChangeEvent]:
        """The changes, in the order of time."""
        check_is_fitted(self, "graph_")
        return [self._event(found) for found in self._stream.changes()]

    @property
    def statistic_(self) -> FloatArray:
        """The scan in units of the threshold, shape (n_scans,)."""
        return np.array(self._stream.statistic)

    @property
    def scan_times_(self) -> IntArray:
        """Steps at which the target windows of `statistic_` begin, shape (n_scans,)."""
        return scan_times(self.n_times_, self.window, self.step)

    @property
    def n_times_(self) -> int:
        """Number of times seen, in `fit` and since."""
        return self._stream.windows.n_seen

    @property
    def panel_(self) -> FloatArray:
        """All observations, shape (n_times_, n_nodes, n_features_in_)."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values)]
        return self._values[0]

    @property
    def block_(self) -> int:
        """Steps per block of the surrogates."""
        return self._stream.calibration.block

    def label(self, step: int) -> Label:
        """Label of a step: the value of the time column, or the number of the step.

        Examples
        --------
        >>> import numpy as np
        >>> from graphratio.changepoints import GraphChangePointDetector
        >>> panel = np.random.default_rng(0).normal(size=(80, 2))
        >>> GraphChangePointDetector(20, n_surrogates=19).fit(panel).label(7)
        7
        """
        return step if self.times_ is None else self.times_[step]

    def to_frame(self) -> Any:
        """One row per event and node, in the order of onset: event, time, node, onset.

        A polars frame if the panel came as one, otherwise pandas.
        """
        rows = [
            (number, event.time, node, onset)
            for number, event in enumerate(self.events_)
            for node, onset in event.onsets.items()
        ]
        names = ("event", "time", "node", "onset")
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        return frames.make_frame(columns, self.backend_)

    def plot(self, axes: Any = None) -> Any:
        """Draw the panel with its events, the scan, and a map of the onsets.

        On three given matplotlib Axes, or on those of a new figure; returns them.
        """
        from graphratio.plotting.change_figure import plot_changes

        check_is_fitted(self, "graph_")
        return plot_changes(self, axes)

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
        >>> detector = GraphChangePointDetector(20, n_surrogates=19, random_state=0).fit(panel)
        >>> path = os.path.join(tempfile.mkdtemp(), "detector.graphratio")
        >>> detector.save(path)
        >>> GraphChangePointDetector.load(path).predict() == detector.predict()
        True
        """
        return state.read(path, cls)

    def _check_parameters(self) -> None:
        check_integer(self.window, "window", low=4)
        check_integer(self.step, "step", low=1, high=self.window)
        check_real(self.level, "level", low=0, high=1)
        check_integer(self.max_directions, "max_directions", low=1)
        least = math.ceil(1 / self.level) - 1
        if check_integer(self.n_surrogates, "n_surrogates", low=1) < least:
            given = Argument("n_surrogates", self.n_surrogates)
            raise InputError(
                (given, f" is too small for the level {self.level}"), f"Use at least {least}"
            )
        if self.block is not None:
            check_integer(self.block, "block", low=1, high=self.window)
        if self.estimator is not None:
            check_estimator(self.estimator)

    def _watch(self, features: PanelFeatures) -> None:
        """Keep the features, with their parameters under the names of GRULSIF."""
        self.features_ = features
        self.bandwidth_ = features.features.bandwidth
        self.graph_penalty_, self.ridge_ = features.graph_penalty, features.ridge
        self.dictionary_ = features.dictionary
        self.n_components_ = len(features.second)

    def _smoother(self) -> Smoother:
        diagonal = self.features_.second + self.features_.ridge
        return Smoother(self.graph_, diagonal, self.features_.coupling)

    def _event(self, found: Found) -> ChangeEvent:
        p_value = self._stream.calibration.p_value(found.statistic)
        return found.named(self.nodes_, self.label, p_value)
