"""Palate: does your reward model know whose reward it is giving?

    import palate
    result = palate.evaluate("sample", models=["builtin/length"], views=["question", "history"], out="runs")
    for run in result:
        print(run.model, run.view, run.metrics["accuracy"], run.metrics["ci95"])

Names are loaded when first used; importing this package imports nothing heavy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palate.data import Dataset, open_data
    from palate.errors import PalateError
    from palate.evaluation import Evaluation, Run, evaluate
    from palate.report import write_report
    from palate.rewards import open_model, register
    from palate.views import View, look

_HOMES = {
    "Dataset": "palate.data",
    "Evaluation": "palate.evaluation",
    "PalateError": "palate.errors",
    "Run": "palate.evaluation",
    "View": "palate.views",
    "evaluate": "palate.evaluation",
    "look": "palate.views",
    "open_data": "palate.data",
    "open_model": "palate.rewards",
    "register": "palate.rewards",
    "write_report": "palate.report",
}
__all__ = [
    "Dataset",
    "Evaluation",
    "PalateError",
    "Run",
    "View",
    "evaluate",
    "look",
    "open_data",
    "open_model",
    "register",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'palate' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
