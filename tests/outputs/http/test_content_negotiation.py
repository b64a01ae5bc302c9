"""Content negotiation by the headers of a scraper."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from windowpane.metrics.fold import MetricState, StateSource
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.content_negotiation import OPEN_METRICS, PLAIN, accepts_gzip, exposition_for
from windowpane.outputs.http.http_server import MetricsServer, start_http_server
from windowpane.outputs.http.routes import Routes

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PROTOBUF_FIRST = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    f"{PROMETHEUS_3}"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize("accept", [PROMETHEUS_2, PROMETHEUS_3, PROTOBUF_FIRST])
def test_prometheus_gets_open_metrics(accept: str) -> None:
    assert exposition_for(accept) is OPEN_METRICS


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/*",
        BROWSER,
        "text/plain;version=0.0.4",
        "application/openmetrics-text;q=0, text/plain",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=0.4, text/plain;q=0.5",
        "text/plain, application/openmetrics-text",
        "application/openmetrics-text;version=0.0.1",
        "application/openmetrics-text;version=nonsense",
        "application/openmetrics-text;version=99999.0.0",
        "application/json",
        ";;,,;q=1",
    ],
)
def test_everything_else_gets_text(accept: str) -> None:
    assert exposition_for(accept) is PLAIN


@pytest.mark.parametrize(
    "accept",
    [
        "application/openmetrics-text",
        "APPLICATION/OpenMetrics-Text; Version=1.0.0",
        'application/openmetrics-text; version="1.0.0"',
        "text/plain;q=0.3,application/openmetrics-text;q=0.300001",
        "application/openmetrics-text;q=high, text/plain;q=0.9",
        "application/openmetrics-text;q=nan",
    ],
)
def test_preferences_follow_the_http_standard(accept: str) -> None:
    assert exposition_for(accept) is OPEN_METRICS


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", False), ("gzip", True), ("GZIP;q=0.1", True), ("gzip;q=0", False), ("gzip; q=0.0, deflate", False),
        ("deflate, br", False), ("*", True), ("*;q=0", False), ("identity, *;q=0.5", True),
        ("gzip;q=0, *", False), ("x-gzip", True),
    ],
)  # fmt: skip
def test_gzip_is_used_if_accepted(header: str, wanted: bool) -> None:
    assert accepts_gzip(header) is wanted


@given(st.text(max_size=200), st.text(max_size=100))
def test_any_header_gives_one_of_the_two_formats(accept: str, encoding: str) -> None:
    assert exposition_for(accept) in (PLAIN, OPEN_METRICS)
    assert accepts_gzip(encoding) in (True, False)


@pytest.fixture
def server(scripted_state: MetricState) -> Iterator[MetricsServer]:
    registry = registry_of(StateSource(scripted_state, clock=lambda: 1_000.0))
    with start_http_server(Routes(registry), port=0) as running:
        yield running


def test_the_endpoint_negotiates_the_format(server: MetricsServer) -> None:
    def fetched(*accept: str) -> tuple[str, str]:
        connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
        connection.putrequest("GET", "/metrics", skip_accept_encoding=True)
        for one in accept:
            connection.putheader("Accept", one)
        connection.endheaders()
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        assert response.status == 200
        assert "Content-Encoding" not in response.headers
        assert response.headers["Vary"] == "Accept, Accept-Encoding"
        return str(response.headers["Content-Type"]), text

    plain = fetched("application/openmetrics-text;q=0.1", "text/plain;q=0.2")
    modern = fetched("text/plain;q=0.2", "application/openmetrics-text; version=1.0.0")
    broken = fetched("application/openmetrics-text;version=x.y")

    assert (plain[0], modern[0], broken) == (PLAIN.content_type, OPEN_METRICS.content_type, plain)
    samples = {
        (sample.name, *sorted(sample.labels.items()), sample.value)
        for family in parse_text(plain[1])
        for sample in family.samples
    }
    assert samples == {
        (sample.name, *sorted(sample.labels.items()), sample.value)
        for family in parse_openmetrics(modern[1])
        for sample in family.samples
    }
