"""The files for a team: the compose profile, and the manifests for Kubernetes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stack import confined, get, port, process

Document = dict[str, Any]
SERVICES = {"team-postgres", "team-server", "team-dashboard", "team-prometheus", "team-grafana"}
TOKEN = "a-token-of-the-team-server"


@pytest.fixture(scope="module")
def compose(root: Path) -> Document:
    return yaml.safe_load((root / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def manifests(root: Path) -> list[Document]:
    return list(yaml.safe_load_all((root / "examples/kubernetes/team.yml").read_text()))


def test_the_services_of_a_team_start_only_with_their_profile(compose: Document) -> None:
    profiles = {name: service.get("profiles") for name, service in compose["services"].items()}

    assert {name for name, given in profiles.items() if given == ["team"]} == SERVICES
    assert {given for name, given in profiles.items() if name not in SERVICES} == {None}
    for name in SERVICES:
        assert set(compose["services"][name].get("depends_on", ())) <= SERVICES
        own = [volume for volume in compose["services"][name]["volumes"] if not volume.startswith("./")]
        assert all(volume.startswith("team-") for volume in own), "the demo's data is never mixed in"


def test_prometheus_scrapes_the_server_with_the_token_that_it_writes(compose: Document, grafana: Path) -> None:
    (scrape,) = yaml.safe_load((grafana / "prometheus/team.yml").read_text())["scrape_configs"]
    services = compose["services"]
    token = scrape["authorization"]["credentials_file"]

    assert scrape["static_configs"][0]["targets"] == ["team-server:9464"]
    assert token in services["team-server"]["command"][2]
    sharing = {name for name in SERVICES if any("team-token:" in one for one in services[name]["volumes"])}
    assert sharing == {"team-server", "team-prometheus"}
    assert services["team-prometheus"]["networks"]["default"]["aliases"] == ["prometheus"]
    assert "--config.file=/etc/prometheus/team.yml" in services["team-prometheus"]["command"]


def test_no_secret_has_a_default(root: Path, compose: Document) -> None:
    server = compose["services"]["team-server"]["environment"]

    assert compose["services"]["team-postgres"]["environment"]["POSTGRES_PASSWORD"] == (
        "${WINDOWPANE_POSTGRES_PASSWORD:-}"
    )
    assert server["WINDOWPANE_BEARER_TOKEN"] == "${WINDOWPANE_BEARER_TOKEN:-}"
    done = run_server(
        compose, root, {"WINDOWPANE_BEARER_TOKEN": "", "WINDOWPANE_STORE": "unused.db"}, address="0.0.0.0"
    )
    assert done.returncode == 1
    assert "without a token or client certificates" in done.stderr


def run_server(compose: Document, root: Path, environment: dict[str, str], *, address: str) -> Any:
    """Run the server's command to its end, with this interpreter and without writing the token."""
    *_, command = compose["services"]["team-server"]["command"][2].split("&& exec windowpane ")
    arguments = command.replace("0.0.0.0", address).split()
    given = os.environ | environment | {"WINDOWPANE_CONFIG": str(root / "examples/team/windowpane.yml")}
    return subprocess.run(
        [sys.executable, "-m", "windowpane", *arguments, "--port", "0"],
        env=given, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.server
def test_the_server_runs_as_compose_runs_it(
    compose: Document, root: Path, tmp_path: Path, postgres_url: str
) -> None:
    service = compose["services"]["team-server"]
    number, token = port(), tmp_path / "token"
    script = service["command"][2].replace("$$", "$").replace("/run/windowpane/token", str(token))
    script = script.replace("0.0.0.0", f"127.0.0.1 --port {number}")
    script = script.replace("exec windowpane", f"exec {sys.executable} -m windowpane")
    environment = os.environ | {
        "WINDOWPANE_STORE": postgres_url, "WINDOWPANE_BEARER_TOKEN": TOKEN, "XDG_DATA_HOME": str(tmp_path),
        "WINDOWPANE_CONFIG": str(root / "examples/team/windowpane.yml"),
    }  # fmt: skip
    check = [part.replace(":9464", f":{number}") for part in service["healthcheck"]["test"][2:]]

    with process(
        confined(["sh", "-c", script], tmp_path),
        ready=f"http://127.0.0.1:{number}/healthz",
        log=tmp_path / "log",
        env=environment,
    ):
        assert token.read_text() == TOKEN
        assert "windowpane_build_info" in (get(f"http://127.0.0.1:{number}/metrics", token=TOKEN) or "")
        assert subprocess.run([sys.executable, *check], check=False, timeout=30).returncode == 0


def pods(manifests: list[Document]) -> Iterator[tuple[str, Document]]:
    """Yield the specification of each pod with the name of its object."""
    for document in manifests:
        if document["kind"] in ("Deployment", "StatefulSet"):
            yield document["metadata"]["name"], document["spec"]["template"]["spec"]


def names(manifests: list[Document], kind: str) -> set[str]:
    return {document["metadata"]["name"] for document in manifests if document["kind"] == kind}


def test_manifests_refer_to_objects_that_exist(manifests: list[Document], root: Path) -> None:
    guide = (root / "docs/team.md").read_text()
    claims, configurations = names(manifests, "PersistentVolumeClaim"), names(manifests, "ConfigMap")
    for _, pod in pods(manifests):
        volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
        for volume in volumes.values():
            assert volume.get("configMap", {}).get("name", "windowpane") in configurations
            assert volume.get("persistentVolumeClaim", {}).get("claimName", "windowpane-server") in claims
            if "secret" in volume:
                assert re.search(rf"secret (tls|generic) {volume['secret']['secretName']} ", guide)
        (container,) = pod["containers"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= {*volumes, "data"}
        for variable in container["env"]:
            secret = variable.get("valueFrom", {}).get("secretKeyRef")
            if secret is not None:
                assert f"--from-literal={secret['key']}=" in guide
                assert f"secret generic {secret['name']}" in guide


def test_services_and_policies_select_pods_and_ports_that_exist(manifests: list[Document]) -> None:
    ports = defaultdict[str, set[str]](set)
    labels = {}
    for document in manifests:
        if document["kind"] in ("Deployment", "StatefulSet"):
            template = document["spec"]["template"]
            labels[template["metadata"]["labels"]["app"]] = document["metadata"]["name"]
            assert document["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
            for container in template["spec"]["containers"]:
                ports[template["metadata"]["labels"]["app"]] |= {one["name"] for one in container["ports"]}
    protected = set()
    for document in manifests:
        if document["kind"] == "Service":
            app = document["spec"]["selector"]["app"]
            assert {one["targetPort"] for one in document["spec"]["ports"]} <= ports[app]
        if document["kind"] == "NetworkPolicy":
            app = document["spec"]["podSelector"]["matchLabels"]["app"]
            protected.add(app)
            for rule in document["spec"]["ingress"]:
                assert rule["from"]
                assert {one["port"] for one in rule["ports"]} <= ports[app]
    assert protected == set(labels)


def test_pods_have_probes_and_no_more_rights_than_they_need(manifests: list[Document], compose: Document) -> None:
    images = {service["image"] for service in compose["services"].values()}
    for name, pod in pods(manifests):
        (container,) = pod["containers"]
        assert container["image"] in images, name
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod["automountServiceAccountToken"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert {"readinessProbe", "livenessProbe"} <= set(container)
        assert container["resources"]["limits"]["memory"]


def test_the_server_of_the_manifests_takes_its_arguments(manifests: list[Document], root: Path) -> None:
    from windowpane.cli.serve import command
    from windowpane.config.loading import load_config

    specification = dict(pods(manifests))["windowpane-server"]
    options = {option for parameter in command.params for option in parameter.opts}
    (container,) = specification["containers"]

    assert {argument.split("=")[0] for argument in container["args"][2:]} <= options
    (configured,) = [document for document in manifests if document["kind"] == "ConfigMap"]
    for text in (configured["data"]["windowpane.yml"], (root / "examples/team/windowpane.yml").read_text()):
        settings = yaml.safe_load(text)
        assert load_config(environ={}, arguments=settings).store.retention_days == 90
        shown = re.sub(r"(?m)^\s*# ?(?=projects:|  )", "", text)
        assert "sha256:" in shown
