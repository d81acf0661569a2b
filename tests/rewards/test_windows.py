"""How many tokens a model can hold, told by its files."""

import json
from pathlib import Path

import pytest

from palate.errors import ModelError
from palate.rewards import open_model


def folder(tmp_path: Path, tokenizer: int | None = None, **config: object) -> str:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.bin").write_bytes(b"")
    if tokenizer:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": tokenizer}))
    return f"hf/{tmp_path}"


@pytest.mark.parametrize(
    ("tokenizer", "config", "window"),
    [
        (None, {"max_position_embeddings": 512}, 512),
        (256, {"max_position_embeddings": 512}, 256),
        (int(1e30), {"n_positions": 1024}, 1024),
        (None, {"text_config": {"max_position_embeddings": 2048}}, 2048),
        (None, {"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
    ],
)
def test_the_smaller_of_what_the_files_say(
    tokenizer: int | None, config: dict[str, object], window: int, tmp_path: Path
) -> None:
    identity = open_model(folder(tmp_path, tokenizer, **config)).identity
    assert identity["window"] == window
    assert identity["room"] == min(1024, window // 2)


def test_a_window_can_be_given_but_not_beyond_the_positions(tmp_path: Path) -> None:
    model = folder(tmp_path, 128, max_position_embeddings=512)
    assert open_model(f"{model}?window=512").identity["window"] == 512
    with pytest.raises(ModelError, match="more than its 512 positions"):
        open_model(f"{model}?window=513")


def test_a_window_that_nothing_tells_must_be_given(tmp_path: Path) -> None:
    model = folder(tmp_path)
    with pytest.raises(ModelError, match=r"\?window=4096"):
        open_model(model)
    assert open_model(f"{model}?window=64").identity["room"] == 32


def test_the_room_must_leave_space_for_a_prompt(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="leaves no space"):
        open_model(folder(tmp_path, max_position_embeddings=64) + "?room=64")
