"""Sending a finished data set to the hub, by the hub's own library and only when asked."""

from pathlib import Path
from typing import cast

from palate.errors import DataError, MissingExtra, ModelError, SpecError

PATTERNS = ["README.md", "data/*/test.parquet"]


def check_push(repo: str | None, licence: str | None) -> None:
    """Make sure that a push can be made, before anything is built.

    Raises:
        SpecError: the repository's name cannot be read, or there is no licence.
        MissingExtra: the hub's library is not installed.
    """
    if repo is None:
        return
    owner, _, name = repo.partition("/")
    if not owner or not name or "/" in name:
        raise SpecError(f"push '{repo}': expected owner/name.")
    if not licence:
        raise SpecError("push: the histories are other people's texts. State under which licence: --licence.")
    from importlib.util import find_spec

    if find_spec("huggingface_hub") is None:
        raise MissingExtra("pushing to the hub", "hub")


def push(folder: Path, repo: str) -> str:
    """Upload card and data, nothing else, to a data set of the hub; a new one is private. Return its address.

    Raises:
        DataError: there is nothing to push.
        ModelError: the hub refuses.
    """
    if not list(folder.glob(PATTERNS[1])):
        raise DataError(f"{folder}: no data to push.")
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    # the bases of the hub's error hold those of its HTTP library, whichever that is
    refusals = cast(tuple[type[Exception], ...], (*HfHubHTTPError.__bases__, OSError, ValueError))
    api = HfApi()
    try:
        found = api.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=PATTERNS,
            commit_message="Pairs made by palate build",
        )
    except refusals as bad:
        raise ModelError(f"push '{repo}': the hub did not take it ({bad}). Log in: hf auth login") from None
    return str(found)
