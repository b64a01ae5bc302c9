"""The Helm chart: linted, rendered, and equal to the plain manifests and the rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from windowpane.alerts.prometheus import kubernetes_objects

helm_python = pytest.importorskip("helm_python", reason="the package that renders charts has no wheel here")

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "windowpane"
Document = dict[str, Any]
Render = Callable[..., list[Document]]


@pytest.fixture(scope="module")
def render() -> Render:
    """A function that renders the chart with some values changed."""

    def rendered(**values: Any) -> list[Document]:
        texts = helm_python.Chart.load(CHART).render(values, name="windowpane", namespace="windowpane")
        return [
            document
            for path, text in texts.items()
            if path.endswith(".yaml")
            for document in yaml.safe_load_all(text)
            if document
        ]

    return rendered


def by_name(documents: list[Document]) -> dict[tuple[str, str], Document]:
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def test_the_chart_has_no_finding() -> None:
    report = helm_python.lint(CHART, strict=True)

    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


def test_the_chart_by_default_is_the_plain_manifests(render: Render) -> None:
    plain = yaml.safe_load_all((ROOT / "examples/kubernetes/team.yml").read_text(encoding="utf-8"))

    assert by_name(render()) == by_name(list(plain))


def test_the_alert_rules_are_those_that_the_command_exports(render: Render) -> None:
    found = by_name(render(prometheusOperator={"enabled": True, "labels": {"release": "monitoring"}}))
    exported = by_name(kubernetes_objects())

    rule = found["PrometheusRule", "windowpane"]
    assert rule["spec"] == exported["PrometheusRule", "windowpane"]["spec"]
    assert rule["metadata"]["labels"]["release"] == "monitoring"
    (endpoint,) = found["ServiceMonitor", "windowpane"]["spec"]["endpoints"]
    (service,) = (
        one for one in found.values() if one["kind"] == "Service" and one["spec"]["ports"][0]["port"] == 443
    )
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]


def test_a_server_that_counts_its_stored_events_is_neither_killed_nor_unreachable(render: Render) -> None:
    (container,) = by_name(render())["Deployment", "windowpane-server"]["spec"]["template"]["spec"]["containers"]

    assert container["startupProbe"]["tcpSocket"] == container["livenessProbe"]["tcpSocket"] == {"port": "https"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz", "it answers 200 as soon as it receives"


def test_the_parts_that_are_turned_off_are_absent(render: Render) -> None:
    found = by_name(render(postgres={"enabled": False}, dashboard={"enabled": False}))

    assert [name for _, name in found if name in ("windowpane-postgres", "windowpane-dashboard")] == []
    assert ("Deployment", "windowpane-server") in found


def test_values_reach_every_object(render: Render) -> None:
    found = by_name(
        render(
            image={"repository": "images.example.net/windowpane", "tag": "9"}, secret="own", storageClass="fast"
        )
    )
    text = yaml.dump_all(found.values())

    assert text.count("images.example.net/windowpane:9") == 2
    assert "name: windowpane\n                key" not in text
    assert found["PersistentVolumeClaim", "windowpane-server"]["spec"]["storageClassName"] == "fast"


def container_of(documents: list[Document], name: str) -> tuple[Document, Document]:
    """Return the only container of a deployment, and its volumes by name."""
    pod = by_name(documents)["Deployment", name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return container, {volume["name"]: volume for volume in pod["volumes"]}


PODS = ("windowpane-server", "windowpane-dashboard")


@pytest.mark.parametrize("name", PODS)
def test_the_audit_key_is_a_file_of_a_secret(render: Render, name: str) -> None:
    container, volumes = container_of(render(auditSecret="own-audit"), name)

    (variable,) = [one for one in container["env"] if one["name"] == "WINDOWPANE_AUDIT_KEY_FILE"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "audit"]
    assert variable["value"] == f"{mount['mountPath']}/key"
    assert mount["readOnly"]
    assert volumes["audit"]["secret"]["secretName"] == "own-audit"
    assert "AUDIT" not in yaml.dump(container_of(render(), name)[0])


def test_the_dashboard_has_a_login_by_default_that_only_it_reads_from_a_secret(render: Render) -> None:
    documents = render()
    container, volumes = container_of(documents, "windowpane-dashboard")

    assert "--insecure" not in container["args"]
    assert volumes["config"]["secret"]["secretName"] == "windowpane-dashboard"
    assert "windowpane-dashboard" not in yaml.dump(container_of(documents, "windowpane-server")[1])


def test_the_dashboard_is_insecure_only_by_choice(render: Render) -> None:
    container, volumes = container_of(render(dashboard={"insecure": True}), "windowpane-dashboard")

    assert "--insecure" in container["args"]
    assert volumes["config"]["configMap"] == {"name": "windowpane"}


@pytest.mark.parametrize("line", [
    "dashboard: {oidc: {client_id: w, client_secret: s3cret}}", "dashboard:\n  oidc:\n    cookie_secret: s3cret",
    "server: {bearer_token: s3cret}", "ingest: {token: s3cret}", "clickhouse:\n  \"password\": s3cret",
])  # fmt: skip
def test_a_secret_in_the_configuration_is_refused_unless_it_is_a_secret(render: Render, line: str) -> None:
    with pytest.raises(helm_python.HelmError, match="configSecret"):
        render(config=line)

    documents = render(config=line, configSecret="own-settings")
    assert "s3cret" not in yaml.dump_all(documents)
    assert container_of(documents, "windowpane-server")[1]["config"]["secret"]["secretName"] == "own-settings"
    assert render(config="# password: none\n")


def test_a_misspelled_value_is_refused() -> None:
    with pytest.raises(helm_python.HelmError, match=r"dashbord"):
        helm_python.Chart.load(CHART).validate_schema({"dashbord": {"enabled": False}})


def test_the_release_of_the_chart_is_the_packages() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert f'version = "{chart["version"]}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert chart["appVersion"] == chart["version"]
