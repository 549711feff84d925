"""Held-out scores of all candidates."""

import graphratio as gr

scene = gr.datasets.make_scenario("Ia", n_nodes=20, n=50, random_state=0)
gr.plot_selection(gr.GRULSIF(random_state=0).fit(scene.samples, scene.graph))
