"""People: what they say of the pairs, how far they agree, and whether they confirm the benchmark."""
