"""The rows that best-of-N adds to a board, in the schema that results of all kinds share."""

from collections.abc import Mapping, Sequence
from typing import Any

RANDOM, ORACLE = "random choice", "oracle choice"
Row = dict[str, Any]


def board_rows(curve: Mapping[str, Any], digest: str) -> list[Row]:
    """Return `{system, metric, value, ci95, n, source}` for every point; `metric` is `bon@<k>/<view>`.

    Random and oracle choice have no view. A value that is null has its reason in `source`.
    """
    about = {"data": curve["data"]["name"], "data_digest": digest, "grader": curve["grader"]["id"]}
    about |= {"samples": curve["source"], "n_samples": curve["n"]}
    rows: list[Row] = []
    for one in curve["systems"]:
        told = {**about, "mode": curve["mode"], "probe": one["probe"]}
        rows += _rows(one["system"], f"/{one['view']}", one["points"], told)
        if "first_k" in one:
            first = {**told, "mode": "first-k"}
            rows += _rows(one["system"], f"/{one['view']}", one["first_k"], first, name="bon-first")
    for k in curve["ks"]:
        rows += _rows(RANDOM, "", [{"k": k, **curve["random"]}], about | {"how": curve["random"]["how"]})
    if curve["oracle"]:
        rows += _rows(ORACLE, "", curve["oracle"]["points"], about | {"how": curve["oracle"]["how"]})
    return rows


def _rows(system: str, view: str, points: Sequence[Mapping[str, Any]], source: Row, *, name: str = "bon") -> list[Row]:
    rows = []
    for point in points:
        told = {**source, "of": point["of"], "coverage": point.get("coverage")}
        if point["value"] is None:
            told["reason"] = "no item has a graded pick"
        rows.append(
            {
                "system": system,
                "metric": f"{name}@{point['k']}{view}",
                "value": point["value"],
                "ci95": point["ci95"],
                "n": point["n"],
                "source": told,
            }
        )
    return rows
