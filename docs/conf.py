"""How the documentation site is built: `make docs`."""

import json
import os
import sys
from pathlib import Path

# One process per example, and figures without a screen.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs" / "_ext")]

from graphratio._version import __version__  # noqa: E402

project = "graphratio"
author = "The graphratio developers"
project_copyright = "2026, the graphratio developers"
version = release = __version__

extensions = [
    "docstrings",
    "linked_names",
    "mathml",
    "results",
    "tables",
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py.md5"]
nitpicky = True
default_role = "code"  # single backquotes in docstrings
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# Pages whose code is run and whose results are shown, see _ext/results.py.
results_pages = [
    "get-started",
    "tutorial",
    "likelihood-ratios",
    "datasets",
    "graphs",
    "coming-from",
    "beyond-the-paper",
    "change-points",
    "command-line",
    "dask",
    "report",
    "restricted-data",
    "scaling",
    "testing",
    "transfer",
    "uncertainty",
    "guide/*",
    "how-to/*",
]
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div.highlight-python pre, div.highlight-bash pre"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 160)]
plot_basedir = str(ROOT / "docs" / "pictures")

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "nested_sections": False,
    "image_scrapers": ("matplotlib",),
    "parallel": 2,
    "reset_modules": ("matplotlib", "strict.warnings_as_errors"),
    "write_computation_times": False,
    "ignore_repr_types": r"matplotlib|numpy|list",
    "thumbnail_size": (480, 300),
}
suppress_warnings = ["config.cache"]

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "graphratio"
html_static_path = ["_static"]
html_css_files = ["graphratio.css"]
html_favicon = "_static/favicon.svg"
html_context = {
    "versions": json.loads((ROOT / "docs" / "versions.json").read_text("utf-8")),
    # Without a mode the theme reports an error on the first visit.
    "default_mode": "auto",
}
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc", "sourcelink"],
    "footer_start": ["copyright"],
    "footer_end": ["versions"],
    "header_links_before_dropdown": 7,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    "index": [],
    "get-started": [],
    "tutorial": [],
    "gallery/index": [],
    "changelog": [],
    "contributing": [],
}
