"""The report: one self-contained HTML file, and the table of nodes behind it."""

from graphratio.report.page import write_report
from graphratio.report.tables import node_summary

__all__ = ["node_summary", "write_report"]
