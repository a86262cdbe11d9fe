"""The test equipment itself: what it serves must be what the real API does, else every test on it proves little."""

from __future__ import annotations

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import ServedCluster, served_cluster
from tests.pve_schema import SHARED, validator
from tests.served_api import SECRET, TOKEN_ID, Reply, ServedApi, environment, new_certificate

AUTHORISED = {"Authorization": f"PVEAPIToken={TOKEN_ID}={SECRET}"}


def ask(
    api: ServedApi, method: str, path: str, *, headers: dict[str, str] = AUTHORISED, body: str | None = None
) -> http.client.HTTPResponse:
    context = ssl.create_default_context(cafile=str(api.ca_file))
    connection = http.client.HTTPSConnection("127.0.0.1", api.port, context=context, timeout=5)
    try:
        connection.request(method, f"/api2/json{path}", headers=headers, body=body)
        response = connection.getresponse()
        response.data = response.read()  # type: ignore[attr-defined]
        return response
    finally:
        connection.close()


def data(api: ServedApi, path: str) -> Any:
    response = ask(api, "GET", path)
    assert response.status == 200, response.reason
    return json.loads(response.data)["data"]  # type: ignore[attr-defined]


def test_the_last_handler_wins_and_every_request_is_recorded(served: ServedApi) -> None:
    served.on("GET", "/nodes/{node}/status", lambda request: request.vars["node"])
    served.on("GET", "/nodes/pve2/status", Reply(595, "No route to host"))
    assert data(served, "/nodes/pve1/status") == "pve1"
    assert ask(served, "GET", "/nodes/pve2/status").reason == "No route to host"
    ask(
        served,
        "POST",
        "/nodes/pve1/status",
        headers={**AUTHORISED, "Content-Type": "application/x-www-form-urlencoded"},
        body="a=1&a=2&b=%C3%A9",
    )
    assert served.paths == ["GET /nodes/pve1/status", "GET /nodes/pve2/status", "POST /nodes/pve1/status"]
    assert served.writes[0].params == {"a": ["1", "2"], "b": "\u00e9"}


@pytest.mark.parametrize(
    ("method", "headers", "body", "status", "reason"),
    [
        ("GET", {}, None, 401, "No ticket"),
        ("GET", {"Authorization": f"PVEAPIToken={TOKEN_ID}=nonsense"}, None, 401, "Authentication failed!"),
        ("GET", AUTHORISED, None, 501, "Method 'GET /foo' not implemented"),
        ("DELETE", AUTHORISED, "a=1", 501, "Unexpected content for method 'DELETE'"),
        ("POST", {**AUTHORISED, "Content-Type": "text/plain"}, "a=1", 506, "unsupported content type 'text/plain'"),
    ],
)
def test_refusals_are_those_of_the_real_api(
    served: ServedApi, method: str, headers: dict[str, str], body: str | None, status: int, reason: str
) -> None:
    response = ask(served, method, "/foo", headers=headers, body=body)
    assert (response.status, response.reason) == (status, reason)
    assert response.getheader("Connection") == "close"


def test_answers_can_be_cut_or_never_come(served: ServedApi) -> None:
    served.on("GET", "/cut", Reply(data="x" * 100, cut=20))
    served.on("GET", "/drop", Reply(drop=True))
    with pytest.raises(http.client.IncompleteRead):
        ask(served, "GET", "/cut")
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        ask(served, "GET", "/drop")


def test_another_certificate_is_another_fingerprint(served: ServedApi) -> None:
    with ServedApi(certificate=new_certificate()) as other:
        assert other.fingerprint != served.fingerprint
        with pytest.raises(ssl.SSLCertVerificationError):
            ask_with_the_authority_of(served, other)
        assert environment(served, other)["PROXMOX_HOST"] == f"127.0.0.1:{served.port},127.0.0.1:{other.port}"


def ask_with_the_authority_of(trusted: ServedApi, api: ServedApi) -> None:
    context = ssl.create_default_context(cafile=str(trusted.ca_file))
    connection = http.client.HTTPSConnection("127.0.0.1", api.port, context=context, timeout=5)
    try:
        connection.request("GET", "/api2/json/version")
    finally:
        connection.close()


# --- the cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[ServedCluster]:
    with served_cluster(3, 12, troubles=True) as api:
        yield api


def test_the_cluster_serves_only_calls_that_the_real_api_has(cluster: ServedCluster) -> None:
    module = validator()
    if module is None:
        pytest.skip("../shared/pve/validate_pve.py is not here")
    missing = []
    for method, pattern, _ in cluster._handlers:
        values = {"node": "pve1", "vmid": "101", "kind": "qemu", "name": "tank", "action": "start", "storage": "nas", "id": "backup-a1"}
        values |= {"volume": "nas:iso/a.iso", "upid": "UPID:pve1:000006BF:0007205C:6B0E2E40:imgdel:310@local:root@pam!mcp:"}
        path = pattern.pattern
        for name, value in values.items():
            path = re.sub(rf"\(\?P<{name}>[^)]*\)", value, path)
        template, _ = module.match(method, path)
        if template is None or method not in module._S.paths[template]:
            missing.append(f"{method} {path}")
    assert missing == []


# fields that only another state of the same object has, or that a served row has beside the captured one
_BESIDE = {
    "/nodes/pve1/storage": {"shared"},
    "/cluster/resources": {"tags", "pool", "lock", "hastate"},
    "/nodes/pve1/qemu": {"tags", "template", "diskread", "diskwrite"},
    "/nodes/pve1/tasks": {"saved"},
    "/cluster/backup": {"pool", "exclude", "vmid"},
    "/nodes/pve1/disks/list": {"used"},
    "/nodes/pve1/disks/zfs": set(),
    "/nodes/pve1/status": set(),
    "/nodes": set(),
}


@pytest.mark.parametrize("path", sorted(_BESIDE))
def test_rows_have_the_fields_that_the_real_api_gives(cluster: ServedCluster, path: str) -> None:
    file = SHARED / "pve" / "captures.json"
    if not file.is_file():
        pytest.skip("../shared/pve/captures.json is not here")
    real: set[str] = set()
    for exchange in json.loads(file.read_text()):
        if exchange["method"] == "GET" and exchange["path"].split("?")[0] == path and isinstance(exchange["answer"], dict):
            found = exchange["answer"].get("data") or []
            real |= {key for row in (found if isinstance(found, list) else [found]) for key in row}
    assert real
    served = data(cluster, path)
    fields = {key for row in (served if isinstance(served, list) else [served]) for key in row}
    assert fields - real - _BESIDE[path] == set()
