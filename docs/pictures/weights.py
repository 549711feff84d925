"""A reference sample, and the same weighted to look like the target."""

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

rng = np.random.default_rng(2)
reference, target = rng.normal(0, 1, 400), rng.normal(1.2, 0.7, 400)
model = gr.RULSIF(alpha=0.1, random_state=0).fit((reference, target))
weights = model.importance_weights((reference, target))
bins = np.linspace(-3, 4, 29)
fig, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
size = float(weights.effective_sample_size[0])
for ax, w, title in (
    (axes[0], None, "reference as it is: 400 observations"),
    (axes[1], weights[0], f"weighted by the ratio: worth {size:.0f} observations"),
):
    ax.hist(
        target, bins, density=True, histtype="step", color="#d55e00", linewidth=1.6, label="target"
    )
    ax.hist(
        reference, bins, weights=w, density=True, color="#0072b2", alpha=0.35, label="reference"
    )
    ax.set(title=title, xlabel="x", yticks=[])
axes[0].legend(frameon=False)
