"""Certificates: verified, pinned, refused; the token goes to nobody else."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from proxmox_mcp.config import Member
from proxmox_mcp.errors import ConfigError, ConnectionFailed, TlsError
from proxmox_mcp.http_client import HttpClient, tls
from tests.http.raw_server import Connection, RawServer
from tests.served_api import SECRET, ServedApi, client, new_certificate, settings

pytestmark = pytest.mark.anyio


def accept_anything(connection: Connection) -> None:
    connection.request()


async def refused(http: HttpClient) -> TlsError:
    with pytest.raises(TlsError) as caught:
        await http.get("version")
    await http.close()
    return caught.value


async def test_the_cluster_authority_is_trusted_by_file(served: ServedApi) -> None:
    served.on("GET", "/version", "ok")
    async with client(served, tls_fingerprint="", ca_file=served.ca_file) as http:
        assert await http.get("version") == "ok"


async def test_a_pin_is_enough(served: ServedApi) -> None:
    served.on("GET", "/version", "ok")
    async with client(served, tls_fingerprint=served.fingerprint) as http:
        assert await http.get("version") == "ok"


async def test_a_pin_for_each_member(served: ServedApi) -> None:
    served.on("GET", "/version", "ok")
    async with client(served, tls_fingerprint=f"{':'.join(['00'] * 32)},{served.fingerprint}") as http:
        assert await http.get("version") == "ok"


async def test_verification_switched_off_works(served: ServedApi) -> None:
    served.on("GET", "/version", "ok")
    async with client(served, tls_fingerprint="", verify_tls=False) as http:
        assert await http.get("version") == "ok"


@pytest.mark.parametrize("pinned", [":".join(["AB"] * 32), "", f"{':'.join(['00'] * 32)},{':'.join(['01'] * 32)}"])
@pytest.mark.parametrize("verify", [True, False])
async def test_a_wrong_certificate_gets_not_one_byte_of_the_request(pinned: str, verify: bool) -> None:
    if not pinned and not verify:
        pytest.skip("nothing is checked then")
    with RawServer(accept_anything) as server:
        http = HttpClient(server.settings(tls_fingerprint=pinned, verify_tls=verify))
        error = await refused(http)
        assert server.requests == []
        assert error.fingerprint == server.certificate.fingerprint
        assert server.certificate.fingerprint in str(error)
        assert str(error).startswith(f"Cannot connect to 127.0.0.1:{server.port}: ")
        assert "Nothing was sent" in str(error)
        assert "PROXMOX_TLS_FINGERPRINT" in error.hint
        if not pinned:
            assert "PROXMOX_CA_FILE" in error.hint
            assert f"PROXMOX_TLS_FINGERPRINT={error.fingerprint}" in error.hint


async def test_a_pin_wins_over_an_authority_that_would_trust(served: ServedApi) -> None:
    async with client(served, tls_fingerprint=":".join(["AB"] * 32), ca_file=served.ca_file) as http:
        error = await refused(http)
    assert "not the pinned one" in error.what
    assert served.requests == []


async def test_every_new_connection_is_checked(served: ServedApi) -> None:
    served.on("GET", "/version", "ok")
    http = HttpClient(settings(served))
    assert await http.get("version") == "ok"
    await http.close()
    with RawServer(accept_anything, certificate=new_certificate()) as other:
        moved = HttpClient(other.settings(tls_fingerprint=served.fingerprint))
        error = await refused(moved)
        assert error.fingerprint == other.certificate.fingerprint
        assert other.requests == []


async def test_another_name_expiry_and_authority_are_told_apart(tmp_path: Path) -> None:
    elsewhere, expired = new_certificate("pve1.lab.test"), new_certificate(days=-1)
    with ServedApi(certificate=elsewhere) as api:
        error = await refused(HttpClient(settings(api, tls_fingerprint="", ca_file=elsewhere.ca_file)))
        assert "for other names than 127.0.0.1" in error.what
        assert error.fingerprint == elsewhere.fingerprint
        assert "PROXMOX_HOST" in error.hint
        assert api.requests == []
    with ServedApi(certificate=expired) as api:
        error = await refused(HttpClient(settings(api, tls_fingerprint="", ca_file=expired.ca_file)))
        assert "has expired" in error.what
        assert "pvecm updatecerts" in error.hint
    with ServedApi(certificate=elsewhere) as api:
        error = await refused(HttpClient(settings(api, tls_fingerprint="", ca_file=expired.ca_file)))
        assert "not signed by an authority" in error.what


async def test_an_expired_certificate_may_still_be_pinned() -> None:
    expired = new_certificate(days=-1)
    with ServedApi(certificate=expired) as api:
        api.on("GET", "/version", "ok")
        async with client(api) as http:
            assert await http.get("version") == "ok"


async def test_an_authority_as_proxmox_makes_them_is_accepted(served: ServedApi) -> None:
    """Strict X.509 checking, which newer Pythons switch on, refuses the certificates of a Proxmox cluster's own authority."""
    import ssl

    context = tls.client_context(settings(served, tls_fingerprint="", ca_file=served.ca_file))
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert not tls.client_context(settings(served, tls_fingerprint="")).verify_flags & ssl.VERIFY_X509_STRICT


async def test_an_authority_file_that_holds_nonsense_is_a_matter_of_configuration(served: ServedApi, tmp_path: Path) -> None:
    for content in ("", "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"):
        file = tmp_path / "ca.pem"
        file.write_text(content)
        async with client(served, tls_fingerprint="", ca_file=file) as http:
            with pytest.raises(ConfigError, match="PROXMOX_CA_FILE"):
                await http.get("version")
    async with client(served, tls_fingerprint="", ca_file=tmp_path / "none") as http:
        with pytest.raises(ConfigError, match="PROXMOX_CA_FILE"):
            await http.get("version")


async def test_a_port_without_tls_is_said_to_be() -> None:
    def http_server(connection: Connection) -> None:
        connection.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.wait()

    with RawServer(http_server, tls=False) as server:
        http = HttpClient(server.settings())
        with pytest.raises(ConnectionFailed, match=r"Cannot connect to 127\.0\.0\.1:\d+: no TLS there") as caught:
            await http.get("version")
        assert not isinstance(caught.value, TlsError)
        await http.close()


async def test_a_server_that_closes_before_tls() -> None:
    """What pveproxy does to addresses that it is told to refuse."""
    with RawServer(lambda connection: None, tls=False) as server:
        http = HttpClient(server.settings())
        with pytest.raises(ConnectionFailed, match="closed the connection before TLS") as caught:
            await http.get("version")
        assert "ALLOW_FROM" in str(caught.value)
        await http.close()


async def test_the_fingerprint_is_fetched_without_sending_anything() -> None:
    with RawServer(accept_anything) as server:
        assert await tls.fetch_fingerprint(Member("127.0.0.1", server.port)) == server.certificate.fingerprint
        assert [request for request in server.requests if request] == []
    assert await tls.fetch_fingerprint(Member("127.0.0.1", server.port), 1) == ""


async def test_a_redirect_is_not_followed_anywhere(served: ServedApi) -> None:
    from proxmox_mcp.errors import NotTheApi
    from tests.served_api import Reply

    with RawServer(accept_anything) as other:
        served.on(
            "GET", "/version", Reply(301, "Moved Permanently", headers={"Location": f"https://127.0.0.1:{other.port}/api2/json/version"})
        )
        async with client(served) as http:
            with pytest.raises(NotTheApi, match="redirect to"):
                await http.get("version")
        assert other.connections == 0


async def test_the_token_is_in_no_error_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong: not in the error, not in what it was raised from, not in the logs of httpx and its parts."""

    def answer(connection: Connection) -> None:
        replies = {
            1: b"",
            2: b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
            3: b"nonsense\r\n\r\n",
            4: b"HTTP/1.1 401 No ticket\r\n\r\n",
        }
        connection.request()
        connection.say(replies.get(connection.number, b"HTTP/1.1 500 " + SECRET.encode() + b"\r\nContent-Length: 0\r\n\r\n"))

    caplog.set_level(logging.DEBUG)
    shown: list[str] = []
    with RawServer(answer) as server:
        changes: list[dict[str, Any]] = [{}] * 6 + [{"members": (Member("127.0.0.1", 9),)}, {"tls_fingerprint": ""}, {"timeout": 0.000001}]
        for change in changes:
            for method in ("GET", "POST"):
                http = HttpClient(server.settings(**change))
                with pytest.raises(Exception) as caught:  # noqa: PT011
                    await (http.get("version") if method == "GET" else http.send("POST", ("x",), {"a": 1}))
                cause: BaseException | None = caught.value
                while cause is not None:
                    shown += [str(cause), repr(cause), repr(vars(cause)), repr(cause.args)]
                    cause = cause.__cause__ or cause.__context__
                shown += [repr(http), repr(vars(http)), repr(http.settings)]
                await http.close()
        for request in server.requests:
            assert SECRET.encode() in request
    # a server that knows the token can say it, and httpx logs what servers say
    shown += [logged for record in caplog.records if " 500" not in (logged := record.getMessage())]
    assert len(shown) > 100
    assert [text for text in shown if SECRET in text] == []
