"""The build report: one self-contained HTML file."""

from kera_hw.driver.report.page import render_report

__all__ = ["render_report"]
