"""A change between two spreads; the evidence over all splits, in units of its threshold."""

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

rng = np.random.default_rng(4)
n_nodes, n_times, change = 20, 320, 200
panel = rng.normal(size=(n_times, n_nodes))
panel[change:, 12:] *= 1.9
graph = gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])
detector = gr.GraphChangePointDetector(random_state=0).fit(panel, graph)
fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(10, 5.2), sharex=True, height_ratios=(1.3, 1), layout="constrained"
)
for node in range(n_nodes):
    top.plot(panel[:, node] * 0.16 + node, color="#d55e00" if node >= 12 else "0.6", linewidth=0.6)
top.set(yticks=[], ylabel="20 nodes", ylim=(-1, n_nodes + 0.8))
top.set_title("From step 200 on the upper eight nodes vary more", loc="left", fontsize=11)
bottom.plot(detector.scan_times_, detector.statistic_, color="#222222")
bottom.axhline(1, color="0.4", linestyle="--", linewidth=1)
bottom.annotate(
    "threshold: a false alarm in 5 % of quiet panels", (4, 1.6), fontsize=9, color="0.3"
)
event = detector.events_[0]
bottom.axvline(event.time, color="#d55e00")
bottom.annotate(
    f"found: step {event.time}, {len(event.nodes)} nodes",
    (event.time + 4, 0.25),
    color="#d55e00",
    fontsize=9.5,
)
bottom.set(xlabel="step", ylabel="evidence", ylim=(0, None))
