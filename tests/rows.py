"""Rows that tests change to their need."""

from typing import Any

Row = dict[str, Any]


def make_row(number: int = 1, **changes: Any) -> Row:
    """Return a complete row in Palate's own form; a value of None removes a field."""
    row: Row = {
        "id": f"q{number}",
        "user_id": f"u{number}",
        "domain": "food",
        "question": f"What should I cook on day {number}?",
        "profile": [
            {"id": f"p{number}-1", "category": "food", "text": f"I grow beans number {number} on my roof."},
            {"id": f"p{number}-2", "category": "sport", "text": "I train for a long race in the hills."},
        ],
        "rubric_aspects": [{"aspect": "Beans", "evidence": "I eat beans", "reason": "They have plenty."}],
        "narrative": f"I eat beans and I have many of them, number {number}.",
        "chosen": f"Cook a bean stew with herbs, variant {number}.",
        "rejected": f"Roast a chicken with potatoes and gravy, variant {number}.",
    }
    return {k: v for k, v in (row | changes).items() if v is not None}
