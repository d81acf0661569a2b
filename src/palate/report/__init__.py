"""The report: from run folders, own or sent by others, one page and one board; and two runs of one thing compared."""

from palate.report.build import Report, write_report
from palate.report.compare import Comparison, compare_runs

__all__ = ["Comparison", "Report", "compare_runs", "write_report"]
