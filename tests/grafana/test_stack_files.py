"""Compose file, image and server configurations: valid, closed to the network, and runnable where we can."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from lens import boards, variables
from stack import confined, get, port, process, wait_for

from windowpane.alerts.prometheus import TIMED_RULES
from windowpane.alerts.rules import RULES, RULES_BY_NAME
from windowpane.core.vocabulary import SEVERITIES

IMAGE = "windowpane:0.1.0"
OURS = ("agent", "dashboard")


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Environment of our programs in a checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_docker_compose_accepts_the_file(root: Path, run) -> None:
    checked = run("docker-compose", "-f", root / "docker-compose.yml", "config", "-q", cwd=root)
    document = (root / "docker-compose.yml").read_text()

    assert checked.returncode == 0, checked.stderr
    assert checked.stderr == ""
    assert "version:" not in document, "Compose 2 warns of it"


def test_everything_is_published_on_loopback_only(root: Path, run) -> None:
    """Resolved as Compose resolves it: every port is bound to 127.0.0.1 unless an address is asked for."""
    resolved = yaml.safe_load(run("docker-compose", "config", cwd=root).stdout)
    published = [published for service in resolved["services"].values() for published in service.get("ports", ())]

    assert len(published) == 9
    assert all(str(one).startswith("127.0.0.1:") for one in published)
    assert not any("network_mode" in service for service in resolved["services"].values())


def test_images_are_pinned(compose: dict[str, Any], root: Path) -> None:
    images = {service["image"] for service in compose["services"].values()}
    base = re.search(r"^FROM (\S+)$", (root / "dashboard/Dockerfile").read_text(), re.MULTILINE)
    assert base

    for image in (*images, base[1]):
        numbers = 2 if image.startswith("postgres:") else 3  # PostgreSQL's releases have two
        assert re.fullmatch(rf"[\w./-]+:v?\d+(\.\d+){{{numbers - 1}}}[\w.-]*", image), image


def test_our_image_is_named_after_the_release(root: Path) -> None:
    version = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert version

    assert f"windowpane:{version[1]}" == IMAGE


def test_services_have_health_checks_restart_and_known_volumes(compose: dict[str, Any], root: Path) -> None:
    for name, service in compose["services"].items():
        assert service["healthcheck"]["test"][0] == "CMD", name
        assert service["restart"] == "unless-stopped"
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (root / source).exists(), volume
                assert volume.endswith(":ro")
            else:
                assert source in compose["volumes"]


def test_every_service_is_confined(root: Path, run) -> None:
    resolved = yaml.safe_load(run("docker-compose", "--profile", "team", "config", cwd=root).stdout)

    assert len(resolved["services"]) == 11
    for name, service in resolved["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["read_only"] is True, name
        assert re.fullmatch(r"\d+[mg]", service["mem_limit"]), name
        assert not {"privileged", "cap_add", "pid", "ipc"} & set(service), name


def test_what_a_service_writes_is_a_volume_or_in_memory(compose: dict[str, Any]) -> None:
    services = compose["services"]
    memory = {name: set(service.get("tmpfs", ())) for name, service in services.items()}

    assert memory["team-postgres"] == {"/tmp", "/var/run/postgresql"}
    assert all(memory[name] == {"/tmp"} for name in (*OURS, "team-server", "team-dashboard", "grafana"))
    assert not any(memory[name] for name in ("prometheus", "team-prometheus", "alertmanager", "inbox"))
    assert services["team-postgres"]["user"] == "999:999", "as root it would need capabilities to change the user"
    assert services["inbox"]["user"] == "65534:65534", "its image has no user of its own"


def test_python_is_started_without_its_folder(compose: dict[str, Any]) -> None:
    commands = [service.get("command", ()) for service in compose["services"].values()]
    commands += [service["healthcheck"]["test"][1:] for service in compose["services"].values()]
    started = [command for command in commands if command and command[0] == "python"]

    assert len(started) == 7
    assert all(command[1] == "-P" for command in started)


def test_nothing_is_mounted_inside_a_volume(compose: dict[str, Any]) -> None:
    """A folder made for a mount would be root's in a volume whose owner is the image's user."""
    for name, service in compose["services"].items():
        targets = {volume.split(":")[1]: volume.split(":")[0] for volume in service.get("volumes", ())}
        volumes = [target for target, source in targets.items() if not source.startswith("./")]
        inside = [one for one in targets for folder in volumes if one.startswith(f"{folder}/")]
        assert inside == [], name


def test_every_health_check_runs_what_the_image_has(compose: dict[str, Any]) -> None:
    tools = {name: service["healthcheck"]["test"][1] for name, service in compose["services"].items()}

    assert tools == {
        "agent": "python",
        "dashboard": "python",
        "inbox": "python",
        "prometheus": "promtool",
        "alertmanager": "amtool",
        "grafana": "wget",
        "team-postgres": "pg_isready",
        "team-server": "python",
        "team-dashboard": "python",
        "team-prometheus": "promtool",
        "team-grafana": "wget",
    }


def test_grafana_has_no_password_to_guess(compose: dict[str, Any]) -> None:
    settings = compose["services"]["grafana"]["environment"]

    assert settings["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert settings["GF_AUTH_DISABLE_LOGIN_FORM"] == "true"
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert not any("PASSWORD" in name for name in settings)
    assert settings["GF_ANALYTICS_REPORTING_ENABLED"] == settings["GF_ANALYTICS_CHECK_FOR_UPDATES"] == "false"


def test_provisioning_matches_mounts_and_dashboards(compose: dict[str, Any], grafana: Path) -> None:
    """Grafana finds the data source where compose runs it and the dashboards where compose puts them."""
    source = yaml.safe_load((grafana / "provisioning/datasources/windowpane.yml").read_text())["datasources"][0]
    provider = yaml.safe_load((grafana / "provisioning/dashboards/windowpane.yml").read_text())["providers"][0]
    mounts = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    scraped = yaml.safe_load((grafana / "prometheus/prometheus.yml").read_text())

    assert (source["type"], source["url"], source["isDefault"]) == ("prometheus", "http://prometheus:9090", True)
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]
    assert provider["options"]["path"] == mounts["./grafana/dashboards"]
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    home = compose["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (grafana / "dashboards" / Path(home).name).is_file()
    for board in boards().values():
        assert variables(board)["datasource"]["query"] == source["type"]


def test_prometheus_reads_the_token_that_the_agent_makes(compose: dict[str, Any], grafana: Path) -> None:
    (scrape,) = yaml.safe_load((grafana / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    token = Path(scrape["authorization"]["credentials_file"])
    sharing = {
        name
        for name, service in compose["services"].items()
        if any(volume.startswith(f"windowpane-token:{token.parent}") for volume in service.get("volumes", ()))
    }

    assert sharing == {"agent", "prometheus"}
    assert f"--bearer-token-file={token}" in compose["services"]["agent"]["command"]


def test_addresses_agree_across_files(compose: dict[str, Any], grafana: Path) -> None:
    scraped = yaml.safe_load((grafana / "prometheus/prometheus.yml").read_text())
    receivers = yaml.safe_load((grafana / "alertmanager/alertmanager.yml").read_text())["receivers"]
    addresses = [
        *scraped["scrape_configs"][0]["static_configs"][0]["targets"],
        *scraped["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"],
        *(one["webhook_configs"][0]["url"].split("/")[2] for one in receivers),
    ]

    assert {address.split(":")[0] for address in addresses} == {"agent", "alertmanager", "inbox"}
    assert set(compose["services"]) >= {"agent", "alertmanager", "inbox", "prometheus", "grafana", "dashboard"}
    assert f"{compose['services']['prometheus']['ports'][0]}".endswith(":9090:9090")


@pytest.mark.parametrize("name", ["prometheus.yml", "http-sd.yml", "team.yml"])
def test_promtool_accepts_the_configuration(grafana: Path, run, tmp_path: Path, name: str) -> None:
    folder = shutil.copytree(grafana / "prometheus", tmp_path / "prometheus")
    (tmp_path / "token").touch()
    configuration = (folder / name).read_text().replace("/run/windowpane/token", str(tmp_path / "token"))
    (folder / name).write_text(configuration)
    checked = run("promtool", "check", "config", folder / name)

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_amtool_accepts_the_routing(grafana: Path, run) -> None:
    checked = run("amtool", "check-config", grafana / "alertmanager/alertmanager.yml")

    assert checked.returncode == 0, checked.stderr
    assert "3 receivers" in checked.stdout


@pytest.mark.parametrize("rule", [*RULES, *TIMED_RULES], ids=lambda rule: rule.name)
def test_every_alert_is_routed_by_its_severity(grafana: Path, run, rule: Any) -> None:
    routed = run(
        "amtool", "config", "routes", "test", f"--config.file={grafana / 'alertmanager/alertmanager.yml'}",
        f"--verify.receivers={rule.severity}", f"severity={rule.severity}", f"alert={rule.name}", "agent=a",
    )  # fmt: skip

    assert routed.returncode == 0, routed.stdout + routed.stderr


def test_inhibitions_name_alerts_that_exist(grafana: Path) -> None:
    names = {rule.name for rule in (*RULES, *TIMED_RULES)}
    for inhibition in yaml.safe_load((grafana / "alertmanager/alertmanager.yml").read_text())["inhibit_rules"]:
        for matcher in (*inhibition["source_matchers"], *inhibition["target_matchers"]):
            assert set(re.findall(r"[a-z_]+", matcher.split("=", 1)[1])) <= names, matcher


def test_a_warning_never_mutes_a_critical_alert(grafana: Path) -> None:
    severities = {rule.name: SEVERITIES.index(rule.severity) for rule in (*RULES, *TIMED_RULES)}
    muted = set()
    for inhibition in yaml.safe_load((grafana / "alertmanager/alertmanager.yml").read_text())["inhibit_rules"]:
        sources, targets = (
            re.findall(r"[a-z_]+", inhibition[f"{side}_matchers"][0].split("=", 1)[1])
            for side in ("source", "target")
        )
        muted |= {(source, target) for source in sources for target in targets}

    assert all(severities[source] >= severities[target] for source, target in muted)
    assert not any((target, source) in muted for source, target in muted), "each would mute the other"
    expected = {
        (source, rule.name)
        for rule in RULES
        for source in rule.inhibited_by
        if severities[source] >= severities[rule.name] and rule.name not in RULES_BY_NAME[source].inhibited_by
    }
    assert expected <= muted, expected - muted


@pytest.mark.server
@pytest.mark.parametrize("service", ["prometheus", "alertmanager"])
def test_each_server_runs_as_compose_runs_it(
    compose: dict[str, Any], root: Path, require_server, tmp_path: Path, service: str
) -> None:
    program = require_server({"alertmanager": "prometheus-alertmanager"}.get(service, service))
    mounts = dict(volume.split(":")[:2] for volume in compose["services"][service]["volumes"])
    command = list(compose["services"][service]["command"])
    address = f"127.0.0.1:{port()}"
    for source, target in sorted(mounts.items(), key=lambda pair: -len(pair[1])):
        there = str(root / source) if source.startswith("./") else str(tmp_path / source)
        command = [re.sub(rf"={re.escape(target)}(?=/|$)", f"={there}", argument) for argument in command]
    command = [re.sub(r"0\.0\.0\.0:\d+", address, argument) for argument in command]
    word, *check = compose["services"][service]["healthcheck"]["test"]
    check = [re.sub(r"127\.0\.0\.1:\d+", address, argument) for argument in check]
    assert word == "CMD"

    with process([program, *command], ready=f"http://{address}/-/ready", log=tmp_path / "log"):
        assert succeeds(require_server, check)
        if service == "prometheus":
            page = wait_for(lambda: get(f"http://{address}/user/runbook.html"), "the runbook")
            assert 'id="overflow"' in page
    assert not succeeds(require_server, check), "a health check fails when nothing answers"


def succeeds(require_server, check: list[str]) -> bool:
    """Return whether a health check succeeds, run by the program that the image has too."""
    command = [str(require_server(check[0])), *check[1:]]
    return subprocess.run(command, check=False, capture_output=True, timeout=30).returncode == 0


@pytest.mark.server
def test_agent_and_dashboard_run_as_compose_runs_them(
    compose: dict[str, Any], root: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("streamlit")
    store = tmp_path / "windowpane.db"
    agent_port, dashboard_port = port(), port()
    agent = ours(compose["services"]["agent"]["command"], tmp_path)
    agent = confined(agent, tmp_path)
    command = confined(ours(dockerfile(root)["CMD"], tmp_path), tmp_path)
    command[command.index("8501")] = str(dashboard_port)
    environment = {**environment, "WINDOWPANE_STORE": str(store), "HOME": "/nonexistent", "TMPDIR": str(tmp_path)}
    health = {name: compose["services"][name]["healthcheck"]["test"][1:] for name in OURS}

    with process(
        [*agent, "--port", str(agent_port)],
        ready=f"http://127.0.0.1:{agent_port}/healthz",
        log=tmp_path / "agent.log",
        env=environment,
    ):
        metrics = f"http://127.0.0.1:{agent_port}/metrics"
        token = (tmp_path / "token").read_text()
        wait_for(lambda: "context_window_turns_total{" in (get(metrics, token=token) or ""), "turns")
        assert get(metrics) is None, "the token is required"
        assert store.exists()
        assert is_healthy(health["agent"], 9464, agent_port)
        with process(
            command,
            ready=f"http://127.0.0.1:{dashboard_port}/_stcore/health",
            log=tmp_path / "dashboard.log",
            env=environment,
        ):
            assert is_healthy(health["dashboard"], 8501, dashboard_port)
    assert not is_healthy(health["agent"], 9464, agent_port), "a health check fails when nothing answers"


@pytest.mark.server
def test_the_inbox_runs_as_compose_runs_it(compose: dict[str, Any], root: Path, tmp_path: Path) -> None:
    """With nothing but Python, as its image has it; it answers its health check, and not after it has stopped."""
    service = compose["services"]["inbox"]
    (mounted,) = service["volumes"]
    source, target, _ = mounted.split(":")
    number = port()
    command = [str(root / source) if part == target else part for part in ours(service["command"], tmp_path)]
    command.insert(1, "-I")
    check = service["healthcheck"]["test"][1:]

    with process([*command, "--port", str(number)], ready=f"http://127.0.0.1:{number}/", log=tmp_path / "log"):
        assert is_healthy(check, 9095, number)
    assert not is_healthy(check, 9095, number)


def ours(command: list[str], folder: Path) -> list[str]:
    """A command of our image, with this interpreter and this host's addresses and folders."""
    changed = [one.replace("0.0.0.0", "127.0.0.1") for one in command]
    changed = [re.sub("/data/|/run/windowpane/", f"{folder}/", one) for one in changed]
    if changed[0] == "windowpane":
        return [sys.executable, "-m", *changed]
    assert changed[0] == "python"
    return [sys.executable, *changed[1:]]


def is_healthy(check: list[str], declared: int, real: int) -> bool:
    """Return whether a container's health check succeeds at another port."""
    assert check[0] == "python"
    command = [sys.executable, *(part.replace(f":{declared}", f":{real}") for part in check[1:])]
    return subprocess.run(command, check=False, capture_output=True, timeout=30).returncode == 0


def dockerfile(root: Path) -> dict[str, Any]:
    """The steps of our image: the last of each instruction, all RUN, and all COPY from the build context."""
    steps: dict[str, Any] = {"COPY": [], "RUN": []}
    for line in (root / "dashboard/Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word in ("COPY", "RUN"):
            steps[word] += [rest] if not rest.startswith("--from=") else []
        elif word == "CMD":
            steps["CMD"] = json.loads(rest)
        elif word and not word.startswith("#") and rest:
            steps[word] = rest
    return steps


def test_the_image_does_not_run_as_root(root: Path) -> None:
    steps = dockerfile(root)

    assert steps["USER"] == "10001"
    assert any("useradd" in step and "chown windowpane /data" in step for step in steps["RUN"])
    assert steps["VOLUME"] == "/data"


def test_hadolint_has_no_finding(root: Path) -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("hadolint has no wheel here")
    checked = subprocess.run(
        [program, root / "dashboard/Dockerfile"], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stdout) == (0, "")


def test_the_build_context_holds_what_is_copied_and_little_else(root: Path) -> None:
    """Everything is excluded except what the steps copy, so that no store or secret can get into an image."""
    rules = (root / ".dockerignore").read_text().split()
    copied = {name.removeprefix("./") for step in dockerfile(root)["COPY"] for name in step.split()[:-1]}

    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == copied


def test_the_images_steps_install_a_working_program(root: Path, tmp_path: Path) -> None:
    """Only what COPY brings is needed to install; the command then starts from anywhere.

    Libraries come from the environment of the tests, so that nothing is downloaded.
    """
    steps = dockerfile(root)
    context = tmp_path / "app"
    for step in steps["COPY"]:
        *sources, target = step.split()
        for source in sources:
            copy(root / source, context / target)
    assert [step for step in steps["RUN"] if step.startswith("pip ")] == [
        "pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .",
        'pip install --no-cache-dir "$(echo /wheels/*.whl)[all]"',
    ]
    environment = clean_environment(tmp_path / "venv")
    offline = ("--quiet", "--no-deps", "--no-index")
    pip = [environment / "bin/python", "-m", "pip"]
    build = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", tmp_path / "wheels", "."]
    subprocess.run(build, check=True, cwd=context, capture_output=True, timeout=300)
    (wheel,) = (tmp_path / "wheels").iterdir()
    installed = subprocess.run(
        [*pip, "install", *offline, "--ignore-installed", wheel],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert installed.returncode == 0, installed.stderr
    result = subprocess.run(
        [environment / "bin" / steps["CMD"][0], "rules", "export"],
        check=False,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert result.returncode == 0, result.stderr
    assert "ContextWindowUtilization" in result.stdout
    located = subprocess.run(
        [environment / "bin/python", "-c", "import windowpane, windowpane_dashboard; print(windowpane.__file__)"],
        check=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert located.stdout.startswith(str(environment))


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def clean_environment(folder: Path) -> Path:
    """A virtual environment that sees the libraries of this one, but not this checkout."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    libraries = next((folder / "lib").glob("python3*")) / "site-packages"
    (libraries / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder
