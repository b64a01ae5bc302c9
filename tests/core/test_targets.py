"""The file or command that the arguments of a tool call name."""

from __future__ import annotations

import pytest

from windowpane.core.tracking.targets import MAXIMUM_TARGET_CHARACTERS, call_target


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ('{"file_path": "/srv/app/main.py", "content": "x"}', "/srv/app/main.py"),
        ('{"path":"src\\\\app.ts"}', "src\\app.ts"),
        ('{"command": "git commit -m \\"a message nobody needs\\""}', "git commit"),
        ('{"cmd":["npm","run","build"]}', "npm"),
        ('{"command": "cd /srv/site && FOO=bar go test ./..."}', "go test"),
        ('{"command": "/usr/bin/python3 script.py"}', "python3 script.py"),
        ('{"command": "ls"}', "ls"),
        ("*** Begin Patch\n*** Update File: docs/plan.md\n+x", "docs/plan.md"),
        ('{"command": ["bash", "-lc", "sed -n 1,20p a.py"]}', "sed"),
        ('{"command": "cd /srv/site\\ngit -C lib status --short"}', "git status"),
        ('const r = await tools.exec_command({ cmd: "rg name src" });', "rg name"),
        ('{"task_id": "a1b2c3", "block": true}', "a1b2c3"),
        ('{"query": "anything"}', None),
        ('{"command": "$(curl evil)"}', None),
        ("not json at all", None),
        ("", None),
    ],
)
def test_a_target_is_a_file_or_a_program_with_its_subcommand(arguments: str, target: str | None) -> None:
    assert call_target(arguments) == target


def test_a_target_is_short_and_has_no_secret() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    found = call_target(f'{{"path": "/tmp/{secret}/x.txt"}}')

    assert found is not None
    assert secret not in found
    assert (call_target('{"path": "' + "d/" * 500 + 'end.py"}') or "").endswith("end.py") is False
    target = call_target('{"path": "' + "d/" * 150 + 'end.py"}') or ""
    assert (len(target), target[0], target[-8:]) == (MAXIMUM_TARGET_CHARACTERS, "…", "d/end.py")
    assert call_target('{"path": "a\\u0000\\u001b[31mb"}') == "a  [31mb"


def test_a_repeated_target_is_the_same() -> None:
    secret = '{"file_path": "/srv/ghp_0123456789abcdefghijABCDEFGHIJ456789/x"}'
    targets = [
        (call_target(secret), call_target('{"cmd": "$(x)"}'), call_target('{"path": "a/b"}')) for _ in "12"
    ]

    assert targets[0] == targets[1]
    assert "ghp_" not in (targets[0][0] or "ghp_")
    assert targets[0][1:] == (None, "a/b")
