"""Pages: self-contained HTML files, and the table of nodes behind the report."""

from graphratio.report.change_page import time_text, write_changes
from graphratio.report.graphs_page import write_graphs
from graphratio.report.node_table import node_summary
from graphratio.report.page_file import PageSection
from graphratio.report.report_page import write_report
from graphratio.report.significance_page import write_significance

__all__ = [
    "PageSection",
    "node_summary",
    "time_text",
    "write_changes",
    "write_graphs",
    "write_report",
    "write_significance",
]
