"""Pages: self-contained HTML files, and the table of nodes behind the report."""

from graphratio.report.changes import time_text, write_changes
from graphratio.report.page import write_report
from graphratio.report.tables import node_summary

__all__ = ["node_summary", "time_text", "write_changes", "write_report"]
