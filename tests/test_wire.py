"""Lines that are no messages: answered, never waited for, and the server goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stdio import Server, serving

HALF = r'"\ud83d"'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("wire"), {}) as running:
        yield running


@pytest.mark.parametrize(
    ("number", "value"),
    [(9001, HALF), (9002, "9" * 6_000), (9003, "[" * 5_000 + "]" * 5_000), (9004, "{"), (9005, '{"id":7,"x":' + HALF + "}")],
)
def test_a_line_that_is_no_json_is_answered_by_its_own_number(server: Server, number: int, value: str) -> None:
    server.raw(f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"x","arguments":{value}}}}}\n'.encode())
    error = server.answer(number)["error"]
    assert error["code"] == -32700
    assert error["message"].startswith("This line is no JSON: ")
    assert error["message"].endswith("nothing was done.")
    assert server.request("ping")["result"] == {}


def test_a_text_id_comes_back_as_it_was(server: Server) -> None:
    server.raw(f'{{"id":"a-1","jsonrpc":"2.0","method":"ping","params":{{"x":{HALF}}}}}\n'.encode())
    assert server.answer("a-1")["error"]["code"] == -32700  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nonsense", -32700),
        (f'{{"params":{{"id":5,"x":{HALF}}}}}', -32700),
        ("[]", -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        ("\x00", -32700),
    ],
)
def test_what_has_no_number_is_answered_without_one(server: Server, line: str, code: int) -> None:
    server.raw(line.encode() + b"\n")
    assert server.answer(None)["error"]["code"] == code  # type: ignore[arg-type]
    assert server.request("ping")["result"] == {}


def test_none_of_it_was_kept_from_the_operator(server: Server) -> None:
    server.raw(b"the last one\n")
    server.answer(None)  # type: ignore[arg-type]
    assert any("This line is no JSON" in line for line in server.stderr)


def test_a_blank_line_is_nothing(server: Server) -> None:
    server.raw(b"\n  \n")
    assert server.request("ping")["result"] == {}
    assert None not in server._kept
