"""From files to verdict: what counts as a model, what is refused, and what the page and the JSON hold."""

import json
from pathlib import Path

import numpy as np
import pytest

import palate
from palate.cli.app import run
from palate.correlate import correlate, write_correlation
from palate.errors import DataError, SpecError
from palate.metrics.latent import joint_resamples

NASTY = 'x</td><img src=x onerror=alert(1)>" onmouseover="alert(2)'


def table(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.csv"
    path.write_text("model,score\n" + "".join(f"{row}\n" for row in text.split()))
    return str(path)


def board(folder: Path, *rows: tuple[str, float | None, dict[str, object]]) -> str:
    made = [
        {"system": s, "metric": "accuracy/history", "value": v, "ci95": None, "n": 9, "source": t} for s, v, t in rows
    ]
    path = folder / "board.json"
    path.write_text(json.dumps({"rows": made}))
    return str(path)


def test_joint_resamples_are_those_of_a_plain_loop() -> None:
    outcomes = np.random.default_rng(1).integers(0, 2, (3, 7)).astype(float)
    outcomes[1, 2] = np.nan
    rng = np.random.default_rng(5)
    plain = []
    for _ in range(20):
        drawn = np.repeat(np.arange(7), rng.multinomial(7, np.full(7, 1 / 7)))
        plain.append(np.nanmean(outcomes[:, drawn], axis=1))
    assert joint_resamples(outcomes, 20, 5) == pytest.approx(np.array(plain))


def test_a_missing_value_is_not_ranked_and_what_one_side_lacks_is_listed(tmp_path: Path) -> None:
    one = table(tmp_path, "one", "a,1 b,2 c,3 d, e,5")
    other = table(tmp_path, "other", "a,1 b,2 c,4 d,9 f,7")
    found = correlate([one], [other], statistics=["spearman"])
    assert (found.rows[0].n, found.rows[0].value) == (3, 1.0)
    assert {(m.source, m.model) for m in found.missing} == {("one", "d"), ("one", "f"), ("other", "e")}
    assert "cannot be told from chance" in found.verdict[0]
    with pytest.raises(DataError, match="--strict"):
        correlate([one], [other], strict=True)


@pytest.mark.parametrize(
    ("left", "right", "more", "message"),
    [
        ("a,1 b,2", "a,1 b,2", {}, "At least 3"),
        ("a,1 b,2 c,3 a,4", "a,1 b,2 c,3", {}, "two different values of 'a'"),
        ("a,1 b,2 c,3", "a,-1 b,0 c,2", {"gains": "raw"}, "below 0"),
        ("a,1 b,2 c,inf", "a,1 b,0 c,2", {}, "line 4"),
    ],
)
def test_refused(tmp_path: Path, left: str, right: str, more: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        correlate([table(tmp_path, "one", left)], [table(tmp_path, "two", right)], **more)  # type: ignore[arg-type]


def test_what_is_undefined_has_a_reason_and_ties_are_averaged(tmp_path: Path) -> None:
    equal = table(tmp_path, "equal", "a,1 b,1 c,1 d,1 e,1")
    zero, truth = table(tmp_path, "zero", "a,0 b,0 c,0 d,0 e,0"), table(tmp_path, "truth", "a,10 b,0 c,0 d,1 e,5")
    found = correlate([equal], [truth, zero], statistics=["ndcg", "spearman"], gains="raw")
    values = {(r.downstream, r.statistic): r for r in found.rows}
    assert values["truth", "ndcg"].value == pytest.approx(0.6909785)
    assert values["truth", "spearman"].value is None
    assert values["zero", "ndcg"].value is None
    assert all(r.reason for r in found.rows if r.value is None)
    written = write_correlation(found, tmp_path / "out")
    json.loads(written.json.read_text(), parse_constant=lambda c: pytest.fail(c))


def test_probes_and_low_coverage_do_not_count_and_a_board_twice_counts_once(tmp_path: Path) -> None:
    rows = [(m, v, {"coverage": 1.0}) for m, v in (("a", 0.5), ("b", 0.6), ("c", 0.7))]
    one = board(tmp_path, *rows, rows[0], ("p", 0.9, {"probe": True}), ("low", 0.9, {"coverage": 0.8}))
    down = table(tmp_path, "down", "a,1 b,2 c,3 p,4 low,5")
    found = correlate([one, one], [down], statistics=["kendall"])
    assert [r.n for r in found.rows] == [3]
    assert {m.model: m.why.split(":")[0] for m in found.missing} == {
        "p": "a probe, not a model",
        "low": "coverage 80 %",
    }
    assert any("counts once" in n for n in found.notes)
    assert any("stand there again" in n for n in found.notes)
    assert correlate([one], [down], statistics=["kendall"], probes=True).rows[0].n == 4


def test_curves_are_read_at_the_most_samples_and_names_stay_text(tmp_path: Path) -> None:
    systems = [
        {
            "system": s,
            "view": "history",
            "probe": False,
            "points": [{"k": k, "value": v * k, "ci95": None} for k in (1, 4)],
        }
        for s, v in ((NASTY, 0.1), ("b", 0.2), ("c", 0.15))
    ]
    (tmp_path / "curve.json").write_text(json.dumps({"systems": systems}))
    one = tmp_path / "one.csv"
    one.write_text('model,score,low,high\n"' + NASTY.replace('"', '""') + '",1,0,2\nb,3,2,4\nc,2,1,3\n')
    found = correlate([str(one)], [str(tmp_path)], statistics=["ndcg"])
    assert found.downstreams[0].metric == "bon@4/history"
    page = write_correlation(found, tmp_path / "out").page.read_text()
    assert "<img" not in page
    assert "<script" not in page


def test_run_folders_go_through_and_share_their_items_noise(tmp_path: Path) -> None:
    models = ["builtin/length", "builtin/lexical", "builtin/random"]
    made = palate.evaluate("sample", models=models, views=["history"], out=tmp_path / "runs")
    text = " ".join(f"{r.model},{k}" for k, r in enumerate(made))
    with pytest.raises(DataError, match="At least 3"):
        correlate([str(tmp_path / "runs")], [table(tmp_path, "down", text)])  # all are probes
    names = correlate([str(tmp_path / "runs")], [str(tmp_path / "runs?label=again")], probes=True).rows[0].models
    assert len(names) == 3
    found = correlate(
        [str(tmp_path / "runs")],
        [table(tmp_path, "own", " ".join(f"{n},{k}" for k, n in enumerate(names)))],
        probes=True,
    )
    assert {r.n for r in found.rows} == {3}
    assert any("all models together" in n for n in found.notes)


def test_exit_codes_and_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = table(tmp_path, "one", "a,1 b,2 c,3 d,5"), table(tmp_path, "two", "a,1 b,2 c,4 d,3")
    args = [
        "correlate",
        "--benchmark",
        one,
        "--downstream",
        two,
        "--out",
        str(tmp_path / "o"),
        "--statistic",
        "spearman",
    ]
    assert run([*args, "--power", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["power"]["sentence"].startswith("To tell a true correlation")
    assert run([*args, "--rho", "0.5"]) == 2
    assert run(["correlate", "--benchmark", one, "--downstream", str(tmp_path / "none.csv")]) == 2
    with pytest.raises(SpecError, match="Did you mean 'spearman'"):
        correlate([one], [two], statistics=["spearmann"])
