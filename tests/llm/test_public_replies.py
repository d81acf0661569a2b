"""The public replies go through the readers of their forms: counts as in the table, every difference explained."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palate.llm import replies
from palate.llm.replies import PAIR_PARSERS, SCORE_PARSERS, Parsed, Unparsed

pytestmark = pytest.mark.shared

Row = dict[str, Any]

TABLE = {
    # family: form, n, read
    "lampqa_match_score": ("match_score", 48, 40),
    "bracket_AB_plus_certainty": ("brackets", 73, 73),
    "bracket_AB_plus_certainty_odd": ("brackets", 1, 0),
    "mtbench_pair": ("brackets", 26, 26),
    "truncated_no_verdict": ("brackets", 18, 0),
    "arena_hard": ("arena", 25, 25),
    "amel_one_token": ("letter", 102, 62),
    "autoj_gpt4_pair": ("letter", 8, 8),
    "rm_r1_answer_tag": ("answer_tag", 7, 7),
    "llmbar_short": ("output_ab", 14, 14),
    "llmbar_cot": ("output_ab", 21, 21),
    "llmbar_no_verdict": ("output_ab", 24, 0),
    "vicuna_two_scores": ("two_scores", 38, 20),
    "mtbench_single": ("rating", 7, 7),
    "autoj_critique": ("rating", 10, 9),
    "alpaca_ranking_list": ("verdict", 1, 0),
    "alpaca_cot_json": ("verdict", 6, 0),
    "ifrb_checklist": ("verdict", 7, 0),
}
SCALES = {"lampqa_match_score": (0, 2), "mtbench_single": (1, 10), "autoj_critique": (1, 10)}


def lines(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as handle:
        yield from map(json.loads, handle)


@pytest.fixture
def rows(shared: Path) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {family: [] for family in TABLE}
    for row in lines(shared / "judge_outputs" / "judge_raw_outputs.jsonl"):
        found[row["family"]].append(row)
    return found


def got(row: Row) -> Any:
    """Return what the reader of the row's form reads, or None."""
    form, _, _ = TABLE[row["family"]]
    if row["family"] in SCALES:
        outcome: Parsed[Any] | Unparsed = SCORE_PARSERS[form](row["raw_output"], *SCALES[row["family"]])
    else:
        outcome = PAIR_PARSERS[form](row["raw_output"])
    return outcome.value if isinstance(outcome, Parsed) else None


def differences(rows: list[Row], theirs: Any) -> list[Row]:
    """Return the rows that `theirs`, which puts the source's own reading into our words, reads otherwise."""
    return [row for row in rows if got(row) != theirs(row)]


def first_line(row: Row) -> str:
    return str(row["raw_output"]).partition("\n")[0].strip()


def test_counts_are_those_of_the_table(rows: dict[str, list[Row]]) -> None:
    for family, (form, n, read) in TABLE.items():
        assert len(rows[family]) == n, family
        assert sum(got(row) is not None for row in rows[family]) == read, family
        assert f"| {family} | {form}" in (replies.__doc__ or "")
        line = next(line for line in (replies.__doc__ or "").split("\n") if line.startswith(f"| {family} |"))
        assert [int(cell) for cell in line.split("|")[3:6]] == [n, read, n - read], family
    assert sum(n for _, n, _ in TABLE.values()) == 436


@pytest.mark.parametrize("form", PAIR_PARSERS)
def test_no_pairwise_form_finds_a_verdict_where_none_is(rows: dict[str, list[Row]], form: str) -> None:
    none = ["truncated_no_verdict", "llmbar_no_verdict", "alpaca_ranking_list", "alpaca_cot_json", "ifrb_checklist"]
    for family in none:
        assert all(isinstance(PAIR_PARSERS[form](row["raw_output"]), Unparsed) for row in rows[family]), family


def test_brackets_agree_with_the_source(rows: dict[str, list[Row]]) -> None:
    def seat(row: Row) -> str:
        first, second = ("A", "B") if row["order"] == "g1" else ("B", "A")
        return {"model_1": first, "model_2": second, "tie": "tie"}[row["upstream_parsed"]]

    assert differences(rows["mtbench_pair"], seat) == []
    # One verdict is refused by the source for want of the certainty beside it.
    other = differences(rows["bracket_AB_plus_certainty"], lambda row: row["upstream_parsed"][0])
    assert [(row["upstream_parsed"], got(row)) for row in other] == [([False, False], "B")]
    assert other[0]["raw_output"].startswith("B]] ")
    # The source reads a B and a certainty out of prose about the user's age.
    assert [row["upstream_parsed"] for row in rows["bracket_AB_plus_certainty_odd"]] == [["B", "23"]]


def test_arena_agrees_with_the_source(rows: dict[str, list[Row]]) -> None:
    words = {"A>B": "A", "B>A": "B", "A=B": "tie", None: None}
    other = differences(rows["arena_hard"], lambda row: words[row["upstream_parsed"]])
    # The source refuses a reply with two different marks; here the last one counts, and it stands in the judge's
    # last sentence, which the other marks (its own answer against theirs) do not.
    assert [row["upstream_parsed"] for row in other] == [None] * 3
    for row in other:
        last = row["raw_output"].strip().split("\n")[-1]
        assert "verdict" in last
        assert last.count("[[") == 1


def test_a_single_token_agrees_with_the_source(rows: dict[str, list[Row]]) -> None:
    words = {"1": "A", "2": "B", None: None}
    other = differences(rows["amel_one_token"], lambda row: words[row["upstream_parsed"]])
    kinds = Counter((first_line(row)[:1].isdigit(), row["upstream_parsed"] is None, got(row)) for row in other)
    assert kinds == {
        (True, False, None): 1,  # a digit with words behind it
        (False, False, None): 1,  # a word before the digit
        (False, True, "B"): 1,  # a letter where the source asked for a digit
    }
    for row in rows["autoj_gpt4_pair"]:
        assert got(row) == {"A": "A", "B": "B", "C": "tie"}[row["raw_output"][0]]


def test_answer_tags_agree_with_the_source(rows: dict[str, list[Row]]) -> None:
    for row in rows["rm_r1_answer_tag"]:
        assert f"<answer>[[{got(row)}]]</answer>" in row["raw_output"]
        if row["upstream_parsed"] is not None:  # 1 if the verdict is the source's gold label
            assert int(row["upstream_parsed"]) == (got(row) == row["truth"])


def test_outputs_a_and_b_agree_with_the_source(rows: dict[str, list[Row]]) -> None:
    def seat(row: Row) -> str:
        return {"1": "AB", "2": "BA"}[row["upstream_parsed"]][row["swap"] == "swap = True"]

    assert differences(rows["llmbar_short"], seat) == []
    other = differences(rows["llmbar_cot"], seat)
    # The source took a condition ("Output (a) is better if …") and somebody else's opinion ("Assistant (a) believes
    # Output (a) is better …") for the verdict; both judges end with the other output.
    assert [got(row) for row in other] == ["B", "B"]
    assert "Output (a) is better if" in other[0]["raw_output"]
    assert "believes Output (a) is better" in other[1]["raw_output"]
    for row in other:
        assert "Output (b) is better" in row["raw_output"][-200:]
        assert "Output (a) is better" not in row["raw_output"][-200:]


def test_two_scores_agree_with_the_source(rows: dict[str, list[Row]]) -> None:
    def side(row: Row) -> str:
        one, two = row["upstream_parsed"]
        return "tie" if one == two else "A" if one > two else "B"

    other = differences(rows["vicuna_two_scores"], side)
    # The source finds scores anywhere, in three shapes; the agreed place is the first line, where these solve the task.
    assert len(other) == 18
    for row in other:
        assert got(row) is None
        assert first_line(row).startswith("First, ")


def test_ratings_agree_with_the_source(rows: dict[str, list[Row]]) -> None:
    assert differences(rows["mtbench_single"], lambda row: row["upstream_parsed"]) == []
    for row in rows["autoj_critique"]:
        value = got(row)
        assert (value is None) == ("[[" not in row["raw_output"])
        assert value is None or row["raw_output"].strip().endswith(f"Rating: [[{value:.0f}]]")


def test_what_the_reference_refused_is_read_where_it_is_one_score(shared: Path) -> None:
    path = shared / "lampqa_judge_logs" / "lampqa_aspect_judge_rejected_by_parser.jsonl"
    read, refused = [], []
    for row in lines(path):
        outcome = SCORE_PARSERS["match_score"](row["printed_text"], 0, 2)
        (read if isinstance(outcome, Parsed) else refused).append((row, outcome))
    assert (len(read), sum(row["n"] for row, _ in read)) == (56, 82_946)
    assert (len(refused), sum(row["n"] for row, _ in refused)) == (13, 17)
    for row, outcome in read:
        numbers = row["match_scores_seen"] or [t for t in row["printed_text"].split() if t.isdigit()]
        assert outcome.value == float(numbers[-1])
        assert len(numbers) == 1 or "updated json object" in row["printed_text"]  # once, corrected by the judge
    # Refused: a bare number that goes on as another turn, or with debris behind it; no object names a score.
    for row, _ in refused:
        assert '"match_score"' not in row["printed_text"]
        assert row["printed_text"].removeprefix("json").split()[0] in ("0", "1", "2")
        assert len(row["printed_text"].removeprefix("json").split()) > 1
