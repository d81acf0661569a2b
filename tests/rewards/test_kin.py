"""A judge of the family that wrote the answers is worth a warning."""

import pytest

from palate.rewards.judge.kin import family, kinship


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("judge/gpt-5-mini", "gpt"),
        ("judge/openai/o3-mini", "gpt"),
        ("Gemini-3-Flash", "gemini"),
        ("google/gemma-2-9b-it", "gemini"),
        ("Qwen2.5-32B-Instruct", "qwen"),
        ("meta-llama/Llama-3.1-8B", "llama"),
        ("claude", "claude"),
        ("my-local-judge", None),
    ],
)
def test_the_family_of_a_name(name: str, found: str | None) -> None:
    assert family(name) == found


def test_one_warning_for_kin_and_none_for_others() -> None:
    assert kinship("judge/qwen3-8b", {"Qwen2.5-7B", "human"}) is not None
    assert kinship("judge/qwen3-8b", {"llama-3"}) is None
    assert kinship("judge/my-judge", {"my-judge"}) is None
