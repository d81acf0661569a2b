"""`correlate`: does a benchmark's order of models agree with their order downstream, and could chance do as well?"""

from palate.correlate.api import Correlation, correlate
from palate.correlate.base import Comparison, Missing, Row
from palate.correlate.page import Written, write_correlation
from palate.correlate.power import Power, power_of

__all__ = [
    "Comparison",
    "Correlation",
    "Missing",
    "Power",
    "Row",
    "Written",
    "correlate",
    "power_of",
    "write_correlation",
]
