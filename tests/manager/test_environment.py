"""Facts about a task's surroundings: files by content, and the commit in every form that git stores it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from windowpane.manager.files import environment
from windowpane.manager.files.environment import LocalEnvironment

ONE, TWO, THREE = "1" * 40, "2" * 40, "3" * 40


def repository(root: Path, head: str) -> Path:
    git = root / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text(head + "\n")
    return git


def commit_and_branch(root: Path) -> tuple[str | None, str | None]:
    facts = LocalEnvironment(root).observe(())
    return facts.get("commit"), facts.get("branch")


def test_files_are_compared_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest, a folder, nothing there, or only a size where reading would take long."""
    (tmp_path / "a.py").write_text("text")
    (tmp_path / "large").write_bytes(b"x" * 11)
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(environment, "MAXIMUM_BYTES", 10)

    assert LocalEnvironment(tmp_path).observe(["a.py", "large", "folder", "gone"]) == {
        "folder": str(tmp_path.resolve()),
        "file a.py": f"sha256 {hashlib.sha256(b'text').hexdigest()}",
        "file large": "11 bytes",
        "file folder": "folder",
        "file gone": "absent",
    }


def test_a_path_that_cannot_be_read_is_a_fact_too(tmp_path: Path) -> None:
    facts = LocalEnvironment(tmp_path).observe(["x" * 5_000])

    assert facts["file " + "x" * 5_000] == "unreadable (OSError)"


def test_a_loose_reference_wins_over_a_packed_one(tmp_path: Path) -> None:
    git = repository(tmp_path, "ref: refs/heads/main")
    (git / "packed-refs").write_text(f"# pack-refs\n{THREE} refs/heads/mainly\n{ONE} refs/heads/main\n")
    assert commit_and_branch(tmp_path) == (ONE, "main")

    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/main").write_text(TWO + "\n")
    assert commit_and_branch(tmp_path) == (TWO, "main")
    (git / "packed-refs").write_text(f"{THREE} refs/remotes/x/refs/heads/other\n")
    (git / "HEAD").write_text("ref: refs/heads/other\n")
    assert commit_and_branch(tmp_path) == (None, "other")


def test_a_detached_head_has_a_commit_and_no_branch(tmp_path: Path) -> None:
    repository(tmp_path, ONE)
    (tmp_path / "src/deep").mkdir(parents=True)

    assert commit_and_branch(tmp_path / "src/deep") == (ONE, None)


def test_a_worktree_has_a_separate_head_and_the_references_of_its_repository(tmp_path: Path) -> None:
    git = repository(tmp_path / "main", "ref: refs/heads/main")
    own = git / "worktrees/tree"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/feature\n")
    (own / "commondir").write_text("../..\n")
    (git / "packed-refs").write_text(f"{TWO} refs/heads/feature\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/.git").write_text("gitdir: ../main/.git/worktrees/tree\n")

    assert commit_and_branch(tmp_path / "tree") == (TWO, "feature")


def test_an_unreadable_repository_is_none(tmp_path: Path) -> None:
    repository(tmp_path, "ref: refs/heads/main")
    (tmp_path / ".git/HEAD").write_bytes(b"\xff\xfe")

    assert LocalEnvironment(tmp_path).observe(()) == {"folder": str(tmp_path.resolve())}
