"""How three divergences grow with a shift, and what a fit with each loss sees at one node."""

import matplotlib.pyplot as plt
import numpy as np
from scipy import special, stats

import graphratio as gr

COLOURS = {"pearson": "#0072b2", "kl": "#d55e00", "jensen-shannon": "#009e73"}
ALPHA = 0.1
x = np.linspace(-9, 14, 4001)
step = x[1] - x[0]
p = stats.norm.pdf(x)
shifts = np.linspace(0, 5, 60)
curves = {name: [] for name in COLOURS}
for shift in shifts:
    q = stats.norm.pdf(x, shift)
    mixture, half = (1 - ALPHA) * p + ALPHA * q, 0.5 * (p + q)
    curves["pearson"].append(0.5 * np.sum(q**2 / mixture) * step - 0.5)
    curves["kl"].append(np.sum(special.rel_entr(q, mixture)) * step)
    both = np.sum(special.rel_entr(q, half) + special.rel_entr(p, half))
    curves["jensen-shannon"].append(0.5 * both * step)
ceilings = {"pearson": 4.5, "kl": np.log(10), "jensen-shannon": np.log(2)}

rng = np.random.default_rng(3)
n_nodes, n = 20, 40
reference = rng.normal(size=(n_nodes, n))
target = rng.normal(size=(n_nodes, n)) + 1.5 * (np.arange(n_nodes) >= 10)[:, np.newaxis]
graph = gr.Graph.from_edges([(i, i + 1) for i in range(n_nodes - 1)])

fig, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
for name, colour in COLOURS.items():
    left.plot(shifts, curves[name], color=colour, label=name)
    left.axhline(ceilings[name], color=colour, linewidth=0.8, linestyle=":")
left.set(
    title="divergence, with its ceiling at alpha = 0.1",
    xlabel="shift of the mean, in standard deviations",
    ylim=(0, 4.8),
)
left.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.92))

points = np.linspace(-3, 4.5, 200)
truth = stats.norm.pdf(points, 1.5)
truth = truth / ((1 - ALPHA) * stats.norm.pdf(points) + ALPHA * truth)
right.plot(points, truth, "--", color="#222222", label="truth")
for name, colour in COLOURS.items():
    model = gr.GRULSIF(loss=name, random_state=0).fit((list(reference), list(target)), graph)
    right.plot(points, model.predict(points, node=15), color=colour, label=name)
right.set(title="ratio at one of 20 nodes, 40 observations each", xlabel="x")
right.legend(frameon=False, loc="upper left")
