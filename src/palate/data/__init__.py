"""Data: from a data string to items, answers and keys, each read from disk when asked for."""

from palate.data.dataset import Dataset, open_data
from palate.data.formats import Record
from palate.data.index import Entry

__all__ = ["Dataset", "Entry", "Record", "open_data"]
