from __future__ import annotations

from typing import Any

import pytest

from proxmox_mcp.errors import PermissionDenied
from proxmox_mcp.tasks import TaskVerdict, Upid, explain, log_head_and_tail, log_tail
from tests.pve_schema import assert_valid
from tests.served_api import Reply, Request, ServedApi, client

UPID = Upid.parse("UPID:pve2:0000A1B2:1C0FFEE00:69A4B000:vzdump::ops@pve!mcp:")
LOG = f"/nodes/pve2/tasks/{UPID}/log"
BACKUP = [f"INFO:  {n % 100}% ({n}.0 GiB of 400.0 GiB)" for n in range(1, 398)]
BACKUP += ["ERROR: Backup of VM 101 failed - job failed with err -5", "INFO: Failed at 2026-03-01 02:14:05", "TASK ERROR: job errors"]


def serve_log(api: ServedApi, lines: list[str]) -> None:
    """Answers as Proxmox does: from the front, 50 unless told otherwise, all with limit=0."""

    def answer(request: Request) -> Reply:
        start, limit = int(request.params.get("start", 0)), int(request.params.get("limit", 50))
        rows: list[dict[str, Any]] = [{"n": n, "t": line} for n, line in enumerate(lines, 1)]
        return Reply(data=rows[start : start + limit] if limit else rows[start:], total=len(rows))

    api.on("GET", LOG, answer)


@pytest.mark.anyio
async def test_g40_the_tail_of_a_long_log_and_how_much_is_left_out(served: ServedApi) -> None:
    serve_log(served, BACKUP)
    async with client(served) as http:
        log = await log_tail(http, UPID, 20)
    assert log.lines == tuple(BACKUP[-20:])
    assert (log.total, log.omitted, log.gap, log.state) == (400, 380, 0, "lines")
    assert [request.params for request in served.requests] == [{"start": "0", "limit": "1"}, {"start": "380", "limit": "20"}]
    assert_valid(served.requests)


@pytest.mark.anyio
async def test_g42_the_log_is_asked_of_the_node_in_the_upid_with_the_upid_encoded(served: ServedApi) -> None:
    serve_log(served, ["TASK OK"])
    async with client(served) as http:
        log = await log_tail(http, UPID, 20)
    assert log.lines == ("TASK OK",)
    (request,) = served.requests
    assert request.path == LOG
    assert " " not in request.target


@pytest.mark.anyio
@pytest.mark.parametrize("lines", [1, 2, 399, 400, 401, 5000])
async def test_the_tail_is_never_longer_than_the_log(served: ServedApi, lines: int) -> None:
    serve_log(served, BACKUP)
    async with client(served) as http:
        log = await log_tail(http, UPID, lines)
    assert log.lines == tuple(BACKUP[-lines:])
    assert log.omitted == max(0, 400 - lines)


@pytest.mark.anyio
async def test_head_and_tail_leave_out_the_middle(served: ServedApi) -> None:
    serve_log(served, BACKUP)
    async with client(served) as http:
        log = await log_head_and_tail(http, UPID, 5, 10)
        whole = await log_head_and_tail(http, UPID, 300, 200)
    assert log.lines == (*BACKUP[:5], *BACKUP[-10:])
    assert (log.omitted, log.gap, log.total) == (385, 5, 400)
    assert whole.lines == tuple(BACKUP)
    assert whole.omitted == 0


@pytest.mark.anyio
@pytest.mark.parametrize(("line", "state"), [("no content", "empty"), ("unable to open file - No such file or directory", "gone")])
async def test_g40_no_log_is_not_shown_as_log_text(served: ServedApi, line: str, state: str) -> None:
    serve_log(served, [line])
    async with client(served) as http:
        logs = [await log_tail(http, UPID, 20), await log_head_and_tail(http, UPID, 5, 5)]
    assert [(log.lines, log.state, log.total) for log in logs] == [((), state, 0)] * 2


@pytest.mark.anyio
async def test_a_log_that_merely_mentions_such_a_line_is_a_log(served: ServedApi) -> None:
    serve_log(served, ["no content", "TASK OK"])
    async with client(served) as http:
        assert (await log_tail(http, UPID, 5)).lines == ("no content", "TASK OK")


@pytest.mark.anyio
async def test_a_log_that_may_not_be_read_says_so(served: ServedApi) -> None:
    served.on("GET", LOG, Reply(403, "Permission check failed (/nodes/pve2, Sys.Audit)"))
    async with client(served) as http:
        with pytest.raises(PermissionDenied) as caught:
            await log_tail(http, UPID, 5)
        told = await explain(http, UPID, TaskVerdict("failed", "job errors"))
    assert "Sys.Audit" in str(caught.value)
    assert told.startswith("job errors (its log could not be read: ")


@pytest.mark.anyio
async def test_g40_a_failure_quotes_the_lines_that_say_why(served: ServedApi) -> None:
    serve_log(served, BACKUP)
    async with client(served) as http:
        told = await explain(http, UPID, TaskVerdict("failed", "job errors"))
    assert told.splitlines()[0] == "job errors"
    assert "log: ERROR: Backup of VM 101 failed - job failed with err -5" in told
    assert "GiB" not in told
    assert told.count("job errors") == 1


@pytest.mark.anyio
async def test_g38_warnings_quote_the_warning_lines(served: ServedApi) -> None:
    warning = "WARN: no efidisk configured! Using temporary efivars disk."
    serve_log(served, ["generating cloud-init ISO", "unable to set a nicer name", warning, "TASK WARNINGS: 1"])
    async with client(served) as http:
        told = await explain(http, UPID, TaskVerdict("warnings", "WARNINGS: 1", 1))
    assert told.splitlines() == ["WARNINGS: 1", f"log: {warning}"]


@pytest.mark.anyio
async def test_without_a_telling_line_the_last_ones_are_quoted(served: ServedApi) -> None:
    serve_log(served, ["one", "", "two", "three", "four", "TASK ERROR: got stuck"])
    async with client(served) as http:
        told = await explain(http, UPID, TaskVerdict("failed", "got stuck"))
    assert told.splitlines() == ["got stuck", "log: two", "log: three", "log: four"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "words"), [("no content", "its log is empty"), ("unable to open file - No such file or directory", "no longer there")]
)
async def test_a_missing_log_is_told(served: ServedApi, line: str, words: str) -> None:
    serve_log(served, [line])
    async with client(served) as http:
        assert words in await explain(http, UPID, TaskVerdict("unknown", "unexpected status"))


@pytest.mark.anyio
async def test_quoted_lines_are_harmless_and_short(served: ServedApi) -> None:
    serve_log(served, ["ERROR: \x1b[31mred\u202e" + "x" * 5000, "TASK ERROR: \x07bell"])
    async with client(served) as http:
        told = await explain(http, UPID, TaskVerdict("failed", "\x07bell"))
    assert all(line.isprintable() for line in told.splitlines())
    assert len(told) < 500
