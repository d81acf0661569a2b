"""People say which answer they think a user prefers: a study as a folder, served as web pages, exported as rows.

    from palate.annotate import Wanted, open_study, export_rows
    with open_study("study", Wanted(data="sample"), ["ana", "ben", "cy"]) as study:
        ...                      # `palate annotate serve` puts pages in front of it
    export_rows("study", "annotations.jsonl")

`sheets` are what people see of an item, frozen when the study is made; `assign` says who sees which; `book` keeps what
they answer, in SQLite; `web` has the pages.
"""

from palate.annotate.export import Exported, export_rows, read_status
from palate.annotate.study import Study, Wanted, open_study

__all__ = ["Exported", "Study", "Wanted", "export_rows", "open_study", "read_status"]
