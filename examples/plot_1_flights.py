"""
Flights in winter and summer
============================

How fast do planes cover the ground on their way from New York to 67 airports? In winter the jet
stream blows hard from the west; flights that go against it are slow. Each airport has two
samples, the flights of winter and those of summer, and is joined to its five nearest airports.
"""

# %%
# The two samples of an airport
# -----------------------------
import textwrap

import matplotlib.pyplot as plt
import numpy as np

import graphratio as gr

data = gr.datasets.load_flights()
print(data)
print(textwrap.fill(data.description, 80))

# %%
# Some airports have thousands of flights and some little more than a hundred. At most 200 of each
# season are enough for a picture, and leave something for the graph to do.
rng = np.random.default_rng(0)


def some(flights):
    """At most 200 of them, at random."""
    return flights[rng.permutation(len(flights))[:200]]


samples = gr.NodeSamples.from_arrays(
    {airport: some(data.samples.reference(airport)) for airport in data.samples.nodes},
    {airport: some(data.samples.target(airport)) for airport in data.samples.nodes},
    feature_names=["ground speed (miles per hour)"],
)
model = gr.GRULSIF(prior_ratio=1, random_state=0).fit(samples.standardized(), data.graph)

# %%
# Which airports change
# ---------------------
# The map is the answer to *how much*: the Pearson divergence between the two seasons, 0 for no
# change. It is largest in Texas and around, on the routes that fly against the jet stream for
# long, and next to nothing along the coast to the north.
gr.plot_graph(model, names=data.names, n_labels=10)

# %%
# In what way
# -----------
# San Francisco, in the west, and Portland in Maine, to the north-east. The upper curve is the
# estimated ratio of summer to winter: above 1 where such speeds became more frequent. Thin lines
# are the neighbours, which may help but need not agree.
fig, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, airport in zip(axes, ("SFO", "PWM"), strict=True):
    gr.plot_node(model, samples, airport, ax=ax, reference_name="winter", target_name="summer")

# %%
# Is it chance?
# -------------
# Flights of one day share the weather, so single flights are not independent and a test that
# permutes them would be too sure of itself. Days can be permuted instead, see
# :doc:`/how-to/dependent`. Here we only ask for the order of the airports:
table = model.to_frame().sort_values("divergence", ascending=False)
table.assign(name=table["node"].map(data.names))[["node", "name", "divergence"]].head(8)
