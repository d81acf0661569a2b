"""PPO: a policy trained on a reward model's numbers, and what that does to its answers."""
