"""What TRL tells of each step becomes a row of the curve, and a checkpoint counts once it is whole. Needs TRL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from palate.ppo.curve import Curve, Row
from palate.ppo.reward import Rewards

CHECKPOINTS, WHOLE = "checkpoints", "whole"
Seen = Callable[[int, int, Row], None]


class Watch(TrainerCallback):
    """Writes the curve; marks whole checkpoints.

    Args:
        curve: where rows go.
        rewards: has the tally of the step.
        steps: of how many.
        seen: gets (step, of how many, row).
    """

    def __init__(self, curve: Curve, rewards: Rewards, steps: int, seen: Seen | None) -> None:
        self._curve, self._rewards, self._steps, self._seen = curve, rewards, steps, seen

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        """Add a row if the log is of a step; the one at the end of a training is not."""
        logs = logs or {}
        if "reward" not in logs and "objective/scores" not in logs:
            return
        row = self._curve.add(state.global_step, self._rewards.take(), logs.get("objective/kl", logs.get("kl")))
        if self._seen:
            self._seen(state.global_step, self._steps, row)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Mark the checkpoint, which is complete by now."""
        (Path(args.output_dir) / f"checkpoint-{state.global_step}" / WHOLE).touch()


def last_checkpoint(folder: Path) -> tuple[Path, int] | None:
    """Return the last whole checkpoint of a run and its step; one that a crash cut short does not count."""
    found = [p.parent for p in (folder / CHECKPOINTS).glob(f"checkpoint-*/{WHOLE}")]
    numbered = sorted((int(p.name.rpartition("-")[2]), p) for p in found)
    return (numbered[-1][1], numbered[-1][0]) if numbered else None
