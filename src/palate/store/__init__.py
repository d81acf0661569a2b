"""Run folders: locked, append-only, resumable."""

from palate.store.drive import Counted, counting, drive, unfinished
from palate.store.folder import RunFolder, canonical, digest_of, refuse_file
from palate.store.rows import RowLog, dump

__all__ = [
    "Counted",
    "RowLog",
    "RunFolder",
    "canonical",
    "counting",
    "digest_of",
    "drive",
    "dump",
    "refuse_file",
    "unfinished",
]
