"""The report: from run folders, own or sent by others, one page and one board."""

from palate.report.build import Report, write_report

__all__ = ["Report", "write_report"]
