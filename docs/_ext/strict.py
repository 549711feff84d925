"""Examples of the gallery may not warn: what they show should be above reproach."""

import warnings


def warnings_as_errors(gallery_conf, fname):
    """Turn the library's warnings into errors, before every example."""
    from graphratio.exceptions import GraphRatioWarning

    warnings.filterwarnings("error", category=GraphRatioWarning)
