"""Talking to language models: prompts as files, filled strictly and in one pass."""

from palate.llm.prompts import Prompt, load_prompt

__all__ = ["Prompt", "load_prompt"]
