"""Generative reward models: a language model that compares two answers, or gives each one a score."""
