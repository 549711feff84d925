"""Error of a quotient of two estimated densities, and of a ratio estimated at once."""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import gaussian_kde, norm

import graphratio as gr

DIMENSIONS, DRAWS, SIZE = (1, 2, 3, 4, 6), 10, 100


def errors(n_features, seed):
    """Mean squared errors of both on fresh points; one feature moves by one standard deviation."""
    rng = np.random.default_rng(seed)
    shift = np.eye(n_features)[0]
    reference, target = rng.normal(size=(2, SIZE, n_features))
    target = target + shift
    points = rng.normal(size=(2000, n_features)) + shift * (rng.random((2000, 1)) < 0.1)
    p, q = (norm.pdf(points - mean).prod(axis=1) for mean in (0, shift))
    truth = q / (0.9 * p + 0.1 * q)
    below, above = gaussian_kde(reference.T)(points.T), gaussian_kde(target.T)(points.T)
    ratio = gr.RULSIF(random_state=0).fit((reference, target)).predict(points, node=0)
    return [np.mean((f - truth) ** 2) for f in (above / (0.9 * below + 0.1 * above), ratio)]


mean = [np.mean([errors(d, seed) for seed in range(DRAWS)], axis=0) for d in DIMENSIONS]
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
names = ("divide two estimated densities", "estimate the ratio itself")
for values, colour, name in zip(np.transpose(mean), ("#777777", "#d55e00"), names, strict=True):
    ax.plot(DIMENSIONS, values, "o-", color=colour, label=name)
ax.set(xlabel="number of features", ylabel="mean squared error", xticks=DIMENSIONS, ylim=(0, None))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
