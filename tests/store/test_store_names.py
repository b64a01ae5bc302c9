"""A store named by its path or URL, the same wherever a store is named; and the privacy of its folder."""

from __future__ import annotations

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from windowpane.cli import main
from windowpane.config.loading import load_config
from windowpane.config.paths import data_folder, default_store, local_base, named_store
from windowpane.core.store_names import StoreUrl, full_name, parse_store_name, store_file
from windowpane.exceptions import ConfigurationError
from windowpane.manager.files.archive import FileArchive
from windowpane.manager.files.checkpoints import write_whole
from windowpane.store.embedded import SqliteStore
from windowpane.store.open import open_reader


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("sqlite:////data/w.db", "/data/w.db"),
        ("sqlite:///w.db", "w.db"),
        ("sqlite:///folder/w.db", "folder/w.db"),
        ("w.db", "w.db"),
        ("/data/w.db", "/data/w.db"),
        ("C:/data/w.db", "C:/data/w.db"),
        ("odd:name.db", "odd:name.db"),
    ],
)
def test_a_name_means_a_file(name: str, path: str) -> None:
    """Three slashes and a relative path, or four and an absolute one, as in SQLAlchemy."""
    assert store_file(name) == path


@pytest.mark.parametrize(
    "name",
    ["postgresql://host/db", "http://host/x", "file:///w.db", "sqlite://w.db", "sqlite:/w.db", "sqlite:///",
     "sqlite:w.db", "file:w.db", "", " ", "sqlite:///:memory:", "sqlite:///w.db?mode=ro", str(Path("sqlite:////data/w.db"))],
)  # fmt: skip
def test_any_other_url_is_an_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"store: .*expected a path, or sqlite:///path"):
        store_file(name)


def test_a_url_names_the_same_store_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_session
) -> None:
    monkeypatch.chdir(tmp_path)
    url, path = f"sqlite:///{tmp_path}/data/w.db", tmp_path / "data" / "w.db"
    with closing(SqliteStore(url)) as store:
        store.append(make_session("s", turns=2))
        assert store.path == path
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    assert load_config(arguments={"store": {"path": url}}).store.path == path
    listed = CliRunner().invoke(main, ["sessions", "--store", url, "--json"])
    assert '"session_id": "s"' in listed.output
    monkeypatch.setenv("WINDOWPANE_STORE", url)
    assert default_store() == path
    assert load_config().store.path == path
    assert '"session_id": "s"' in CliRunner().invoke(main, ["sessions", "--json"]).output
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_unknown_scheme_is_refused_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = "mysql://host/db"
    refused = CliRunner().invoke(main, ["sessions", "--store", url])
    assert refused.exit_code == 2
    assert "there is no store of the kind 'mysql'" in refused.output
    with pytest.raises(ConfigurationError, match=r"store\.path: there is no store"):
        load_config(arguments={"store": {"path": url}})
    monkeypatch.setenv("WINDOWPANE_STORE", url)
    with pytest.raises(ConfigurationError, match=r"WINDOWPANE_STORE \(store.path\): there is no store"):
        load_config()
    refused = CliRunner().invoke(main, ["sessions"])
    assert refused.exit_code == 1
    assert "WINDOWPANE_STORE" in refused.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0, 0o022, 0o177, 0o777])
def test_folders_are_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        if not umask & 0o600:  # such an umask denies the owner the files themselves
            SqliteStore(tmp_path / "a" / "b" / "w.db").close()
        archive = FileArchive(tmp_path / "c" / "archive", redact=str)
        archive.put("s", "h", "text")
        write_whole(tmp_path / "d" / "e" / "t.json", b"{}")
    finally:
        os.umask(before)

    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(folders) >= 5
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://agent@db.internal/windowpane", "postgresql://agent@db.internal/windowpane"),
        ("postgres://agent:s3cret@db:5433/w?sslmode=require", "postgresql://agent:***@db:5433/w?sslmode=require"),
        ("postgresql://agent:p@ss/w:ord@db/w", "postgresql://agent:***@db/w"),
        (
            "postgresql:///w?host=/run/pg&password=s3cret&user=a",
            "postgresql:///w?host=/run/pg&password=***&user=a",
        ),
        ("https://agent:s3cret@windowpane.internal", "https://agent:***@windowpane.internal"),
    ],
)
def test_the_url_of_a_server_is_shown_without_its_password(url: str, shown: str) -> None:
    name = parse_store_name(url)

    assert isinstance(name, StoreUrl)
    assert str(name) == shown
    assert f"{name!r} {[name]}" == f"StoreUrl({shown!r}) [StoreUrl({shown!r})]"
    assert full_name(name) == url.replace("postgres://", "postgresql://")
    config = load_config(arguments={"store": {"path": url}})
    assert config.store.path == name
    assert "s3cret" not in f"{config} {config!r}"


def test_the_local_files_of_a_server_store_are_in_the_data_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    first, second = (named_store(f"postgresql://agent:{password}@db/w") for password in ("one", "two"))

    assert local_base(first) == local_base(second)
    assert data_folder() in local_base(first).parents
    assert local_base(named_store("postgresql://agent@other/w")) != local_base(first)
    assert local_base(tmp_path / "w.db") == tmp_path / "w.db"


def test_a_store_that_receives_events_cannot_be_opened() -> None:
    with pytest.raises(ConfigurationError, match=r"https://w\.internal receives events and cannot be opened"):
        open_reader("https://w.internal")
