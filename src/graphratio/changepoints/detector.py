"""The detector: parameters, fit, predict, update; thin over the modules beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from graphratio._utils.exceptions import Argument, InputError
from graphratio._utils.parameters import as_generator, check_integer, check_real
from graphratio._utils.threads import suitable_threads
from graphratio._utils.typing import FloatArray, IntArray, Label, RandomState
from graphratio.changepoints import state
from graphratio.changepoints.calibration import Calibration
from graphratio.changepoints.events import ChangeEvent
from graphratio.changepoints.panel import read_panel, read_step
from graphratio.changepoints.panel_features import PanelFeatures, look
from graphratio.changepoints.recalibration import calibrated
from graphratio.changepoints.smoother import Smoother
from graphratio.changepoints.stream import ChangeStream, Found
from graphratio.changepoints.windows import scan_times
from graphratio.data import frames
from graphratio.data.graph import Graph
from graphratio.data.validation import plain_label
from graphratio.estimators import GRULSIF, Pool
from graphratio.estimators.base import all_or_nothing

# A panel has at least this many windows: fewer say nothing about how windows vary.
FEWEST_WINDOWS = 4


class GraphChangePointDetector(BaseEstimator):
    """Since when, where, and in which order: change-points of time series on a graph.

    Two windows of equal length slide over the panel, a reference window and right after it a
    target window. At every time the ratio of the two is estimated at all nodes together, as in
    GRULSIF, and its size is compared with a threshold. The threshold is set so that a panel of
    the same length in which nothing changes raises an alarm anywhere with probability
    `false_alarm`, by putting blocks of time, of all nodes together, in random order.

    Any change of the distributions counts, not only of the mean. The panel should be free of
    trends and seasons: they are changes too.

    Parameters
    ----------
    window : int
        Length of each window, in steps. Long windows see small changes; two changes at the
        same nodes should be at least a window apart, and changes less than a window from the
        ends of the panel are not seen.
    step : int, default 1
        Look at every step-th time only.
    estimator : GRULSIF or Pool, optional
        Its kernel, dictionary, and those of its bandwidth and penalties that are single numbers
        are used. What is None comes from rules that look at the first two windows without
        asking which observation came when: the bandwidth is the median distance, the ridge
        1 % and the pull along the edges 10 % of the variance of the features. `Pool` means
        that nodes do not borrow from each other. alpha is 1/2, whatever the estimator says:
        with windows of equal length the mixture is then the pool of both.
    false_alarm : float in (0, 1), default 0.05
        Chance of any false alarm on a panel of the same length; also the expected share of
        unchanged nodes among those that an event names.
    n_surrogates : int, default 99
    block : int, optional
        Steps per block of the surrogates; default 1 if no autocorrelation is visible, else 8
        times as many lags as it is, at most a window.
    standardize : bool, default True
        Shift and scale every feature of every node by its mean and spread in the first two
        windows.
    max_directions : int, default 12
        Largest number of principal directions of the kernel features.
    random_state : int, numpy Generator, RandomState or None
        Seed of the surrogates, and of random dictionaries.
    progress : bool, default False

    Attributes
    ----------
    events_ : list of ChangeEvent
        In the order of time. While an alarm is not over the last one may still be refined.
    statistic_ : ndarray of shape (n_scans,)
        The scan in units of the threshold, at `scan_times_`: an alarm is raised above 1.
    p_value_ : float
        Chance of a scan as high as that of `fit` if nothing changes.
    nodes_, graph_, n_times_, n_features_in_, feature_names_in_ :
        What was fitted.
    bandwidth_, graph_penalty_, node_penalty_, dictionary_, n_components_, block_ :
        What was fixed.

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
        estimator: GRULSIF | Pool | None = None,
        false_alarm: float = 0.05,
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
        self.false_alarm = false_alarm
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
            A data frame is long: one row per node and time, in any order; one node at one time
            has one row.
        graph : Graph, optional
            An array has the nodes in its order, a frame is matched by label. None means no
            edges.
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
            psi = self.features_(read.values)
            calibration = calibrated(
                psi,
                self._smoother(),
                self._new_stream,
                window=self.window,
                step=self.step,
                block=self.block,
                false_alarm=self.false_alarm,
                n_surrogates=self.n_surrogates,
                random_state=rng,
                progress=self.progress,
            )
            self._stream = self._new_stream(calibration)
            self._stream.replay(psi)
        self.p_value_ = calibration.p_value(max(self._stream.statistic))
        return self

    def predict(self) -> list[int]:
        """Times of the changes, as steps, ending in the number of times that were seen."""
        check_is_fitted(self, "graph_")
        return [*sorted({event.step for event in self.events_}), self.n_times_]

    def update(self, x_t: Any, time: Label | None = None) -> ChangeEvent | None:
        """Take in the observations of one more time.

        The threshold is that of `fit`: the chance of a false alarm is `false_alarm` for every
        stretch as long as the panel there.

        Parameters
        ----------
        x_t : array of shape (n_nodes, n_features) or (n_nodes,), or mapping of label to values
        time : label
            Needed if the panel had times; later than all before.

        Returns
        -------
        event : ChangeEvent or None
            The change, at the moment an alarm is raised. Its time and nodes are those known by
            then; `events_` has them refined as more comes in, and finally a window after the
            peak of the scan.
        """
        check_is_fitted(self, "graph_")
        values = read_step(x_t, self.nodes_, self.n_features_in_)
        self._append_time(time)
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
        """All that was seen, shape (n_times_, n_nodes, n_features_in_)."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values)]
        return self._values[0]

    @property
    def block_(self) -> int:
        """Steps per block of the surrogates."""
        return self._stream.calibration.block

    def label(self, step: int) -> Label:
        """What a step is called: the value of the time column, or its number.

        Examples
        --------
        >>> import numpy as np
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
        columns = ("event", "time", "node", "onset")
        return frames.make_frame(
            {name: [row[i] for row in rows] for i, name in enumerate(columns)}, self.backend_
        )

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
        state.write(path, self)

    @classmethod
    def load(cls, path: str | Path) -> GraphChangePointDetector:
        """Read a detector written by `save`; updates go on where they stopped.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
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
        check_real(self.false_alarm, "false_alarm", low=0, high=1)
        check_integer(self.max_directions, "max_directions", low=1)
        least = math.ceil(1 / self.false_alarm) - 1
        if check_integer(self.n_surrogates, "n_surrogates", low=1) < least:
            raise InputError(
                (
                    Argument("n_surrogates", self.n_surrogates),
                    f" cannot tell a chance of {self.false_alarm}",
                ),
                f"Use at least {least}",
            )
        if self.block is not None:
            check_integer(self.block, "block", low=1, high=self.window)
        if self.estimator is not None and not isinstance(self.estimator, GRULSIF | Pool):
            raise InputError(
                f"an estimator of type {type(self.estimator).__name__} cannot be used: the "
                "windows need features that all nodes share",
                "Pass GRULSIF, Pool or None",
            )

    def _watch(self, features: PanelFeatures) -> None:
        """Keep the features, and what was fixed with them under the names of GRULSIF."""
        self.features_ = features
        self.bandwidth_ = features.features.bandwidth
        self.graph_penalty_, self.node_penalty_ = features.graph_penalty, features.node_penalty
        self.dictionary_ = features.dictionary
        self.n_components_ = len(features.second)

    def _smoother(self) -> Smoother:
        # POOL has a ridge, but nothing runs along the edges.
        coupling = 0.0 if isinstance(self.estimator, Pool) else self.features_.coupling
        return Smoother(self.graph_, self.features_.second + self.features_.ridge, coupling)

    def _new_stream(self, calibration: Calibration) -> ChangeStream:
        shape = (self.n_components_, len(self.nodes_))
        return ChangeStream(calibration, self.window, self.step, self.false_alarm, shape)

    def _append_time(self, time: Label | None) -> None:
        if self.times_ is None:
            if time is not None:
                raise InputError(
                    "the panel had no times, so steps are counted", "Call update without time"
                )
            return
        if time is None:
            raise InputError("the panel had times", "Pass the time of the update too")
        label = plain_label(time, "time")
        if not label > self.times_[-1]:  # type: ignore[operator]
            raise InputError(
                f"the time {label!r} is not after the last one, {self.times_[-1]!r}",
                "Pass updates in the order of time",
            )
        self.times_.append(label)

    def _event(self, found: Found) -> ChangeEvent:
        order = sorted(range(len(found.nodes)), key=lambda i: found.onsets[i])
        return ChangeEvent(
            time=self.label(found.step),
            interval=(self.label(found.interval[0]), self.label(found.interval[1])),
            nodes=tuple(self.nodes_[i] for i in found.nodes),
            onsets={self.nodes_[found.nodes[i]]: self.label(found.onsets[i]) for i in order},
            step=found.step,
            statistic=found.statistic,
            p_value=self._stream.calibration.p_value(found.statistic),
            alarm=self.label(found.alarm),
        )
