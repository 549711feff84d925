"""
A stream, watched online
========================

A detector is fitted on a quiet past and then fed one time step after the other. Each step costs
about a millisecond, and an alarm is raised with the nodes that changed and the time when it began.
The state can be saved at any moment and taken up again, tomorrow or on another machine.
"""

# %%
import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

rng = np.random.default_rng(0)
n_nodes = 36
side = np.arange(6)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2).astype(float)
graph = gr.Graph.from_coordinates(places, k=4)
corner = (places < 2.5).all(axis=1)

quiet = rng.normal(size=(300, n_nodes))
detector = gr.GraphChangePointDetector(random_state=0).fit(quiet, graph)
print("events in the past:", detector.events_)

# %%
# Step by step
# ------------
# At step 380 the nine nodes of a corner start to vary more. Half-way the detector is saved and
# loaded again: nothing is lost.
stream = rng.normal(size=(160, n_nodes))
stream[80:, corner] *= 2.0
path = Path(tempfile.mkdtemp()) / "detector.graphratio"
alarms, times, evidence = [], [], []
for step, x_t in enumerate(stream, start=len(quiet)):
    if step == 350:
        detector.save(path)
        detector = gr.GraphChangePointDetector.load(path)
    began = perf_counter()
    event = detector.update(x_t)
    times.append(perf_counter() - began)
    evidence.append(detector.evidence_)
    if event is not None and not alarms:
        print(f"step {step}: alarm! something changed at step {event.time}, at nodes {event.nodes}")
    if event is not None:
        alarms.append(step)

# %%
# What the detector saw
# ---------------------
# The evidence is in units of its threshold, so an alarm is a value above 1. Forty steps after the
# change the event is final: its nodes and its time have been refined since.
final = detector.events_[0]
fig, (left, right) = plt.subplots(
    1, 2, figsize=(7.8, 3.6), width_ratios=(2.4, 1), layout="constrained"
)
left.plot(np.arange(len(quiet), len(quiet) + len(stream)), evidence, ".-", color="#0072b2")
left.axhline(1, color="0.3", linestyle="--", linewidth=1)
left.annotate("threshold", (302, 1.02), fontsize=9, color="0.3")
left.set_ylim(0, None)
left.axvline(380, color="0.6", linewidth=1)
left.annotate("change begins", (379, 0.05), ha="right", fontsize=9, color="0.4")
left.axvline(alarms[0], color="#d55e00", linewidth=1)
left.annotate(
    "first alarm", (alarms[0] + 1, left.get_ylim()[1] * 0.93), fontsize=9, color="#d55e00"
)
left.set(xlabel="step", ylabel="evidence, in units of the threshold")
colour = np.where(np.isin(np.arange(n_nodes), final.nodes), "#d55e00", "#c9d6df")
right.scatter(*places.T, c=colour, s=150)
right.scatter(*places[corner].T, s=260, facecolors="none", edgecolors="0.3")
right.set_title("named (circled: truth)", fontsize=10)
right.set_aspect("equal")
right.set_axis_off()
print(f"final: step {final.time} (95 % interval {final.interval}), nodes {final.nodes}")
print(f"typical cost of a step: {1000 * np.median(times):.1f} ms")
