"""
Transfer across sites with importance weights
=============================================

Forty clinics. At each a model was trained on past patients (labelled), and is to be used on
today's (not labelled). At twelve of them the patients became older. The relation between age and
outcome is curved and the model a straight line, so it matters where the line is fitted: patients
who look like today's should count more.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

import graphratio as gr

rng = np.random.default_rng(1)
n_sites, n = 40, 60
places = rng.uniform(size=(n_sites, 2))
graph = gr.Graph.from_coordinates(places, k=4)
aged = np.argsort(np.hypot(*places.T))[:12]
older = np.isin(np.arange(n_sites), aged)


def outcome(age):
    """What is to be predicted: flat for the young, steep for the old."""
    return np.exp((age - 60) / 12) + rng.normal(0, 0.2, age.shape)


past = rng.normal(50, 9, size=(n_sites, n, 1))
today = rng.normal(50, 9, size=(n_sites, n, 1)) + 14 * older[:, None, None]
y = outcome(past[:, :, 0])
samples = gr.NodeSamples.from_arrays(past, today, feature_names=["age"])

# %%
# One call for all sites
# ----------------------
# ``NodewiseTransfer`` estimates the ratio of today's to past patients at all sites together, tests
# where there is evidence of a shift, reweights those sites, and leaves the others alone.
transfer = gr.NodewiseTransfer(LinearRegression(), random_state=0)
transfer.fit(samples.standardized(), y, graph)
print(
    f"reweighted: {transfer.is_reweighted_.sum()} sites; of those that aged: "
    f"{(transfer.is_reweighted_ & older).sum()} of {older.sum()}"
)

# %%
# One site in detail
# ------------------
# Dots are past patients, in the size of their weights. The dashed line is fitted to all of them
# equally, the solid one to the weighted: it is right where today's patients are.
site = int(aged[0])
ages = np.linspace(25, 85, 100)[:, None]
plain = LinearRegression().fit(past[site], y[site])
weights = transfer.weights_[site]
fig, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.8), layout="constrained")
left.scatter(past[site, :, 0], y[site], s=8 + 30 * weights, color="#0072b2", alpha=0.6)
left.scatter([], [], s=40, color="#0072b2", alpha=0.6, label="past, sized by weight")
left.plot(ages, np.exp((ages - 60) / 12), color="0.6", label="truth")
left.plot(ages, plain.predict(ages), "k--", label="unweighted")
left.plot(ages, transfer.predict(ages, node=site), color="#d55e00", linewidth=2, label="weighted")
left.axvspan(
    *np.quantile(today[site], [0.1, 0.9]),
    color="#d55e00",
    alpha=0.1,
    label="most of today's patients",
)
left.set(xlabel="age", ylabel="outcome", ylim=(-2, 6), title=f"site {site}")
left.legend(frameon=False, fontsize=8.5)

# Errors on new patients of today, site by site.
fresh = rng.normal(50, 9, size=(n_sites, 2000, 1)) + 14 * older[:, None, None]
truth = np.exp((fresh[:, :, 0] - 60) / 12)
error = np.array(
    [
        [
            np.mean((LinearRegression().fit(past[v], y[v]).predict(fresh[v]) - truth[v]) ** 2),
            np.mean((transfer.predict(fresh[v], node=v) - truth[v]) ** 2),
        ]
        for v in range(n_sites)
    ]
)
for group, colour, name in ((older, "#d55e00", "aged"), (~older, "0.5", "as before")):
    right.scatter(*error[group].T, color=colour, s=30, label=name)
span = [error.min() * 0.8, error.max() * 1.2]
right.plot(span, span, "k:", linewidth=1)
right.set(
    xscale="log", yscale="log", xlabel="squared error, unweighted", ylabel="squared error, transfer"
)
right.set_title("below the line: weights helped")
right.legend(frameon=False)
print(
    "mean squared error at sites that aged: "
    f"{error[older, 0].mean():.2f} unweighted, {error[older, 1].mean():.2f} weighted"
)

# %%
# What the weights cost
# ---------------------
# Reweighting throws away information. The effective sample size says how much is left. The table
# also has the overlap, the held-out losses with and without weights, and the reason of every
# verdict.
print(transfer.evidence_.describe(site))
transfer.to_frame().loc[older].head()
