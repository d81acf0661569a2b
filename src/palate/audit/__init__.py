"""Is a benchmark one to believe? `audit` looks for artefacts and says for each what was found, and how sure it is."""

from palate.audit.api import Audit, audit, card_text
from palate.audit.base import Check, Figure, Worst
from palate.audit.page import Written, write_audit

__all__ = ["Audit", "Check", "Figure", "Worst", "Written", "audit", "card_text", "write_audit"]
