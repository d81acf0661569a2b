"""Clean sets, written once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def audited(write: Callable[..., Path]) -> Callable[..., Any]:
    """Write rows and audit them."""
    from palate.audit import audit

    return lambda rows, **more: audit(write(*rows), **more)
