"""What the SDK's stdio leaves in silence: a line that is no message gets an error, so that nobody waits for its answer for ever.

A model's text that ends in half a character (`"\\ud83d"`) is enough for such a line.
"""

from __future__ import annotations

import contextvars
import json
import re
import sys
from collections.abc import Callable
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError

# Before the parameters, where clients write it; what is nested may have an "id" of its own.
_ID = re.compile(r'^\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"\s*,\s*)*"id"\s*:\s*([0-9]{1,15}|"[^"\\]{0,200}")\s*[,}]')


class Answering:
    """The SDK's stream of messages, without those that it could not read: they are answered here. `at_end` is told of its end."""

    def __init__(self, messages: Any, answers: Any, at_end: Callable[[], None]) -> None:
        self._messages, self._answers, self._at_end = messages, answers, at_end

    @property
    def last_context(self) -> contextvars.Context | None:
        """What the SDK looks for beside a message."""
        found: contextvars.Context | None = getattr(self._messages, "last_context", None)
        return found

    async def receive(self) -> SessionMessage:
        """The next message that could be read."""
        while isinstance(item := await self._next(), Exception):
            answer = refusal(item)
            if answer is None:
                continue
            sys.stderr.write(f"pve-mcp: {answer.error.message}\n")
            await self._answers.send(SessionMessage(answer))
        return item  # type: ignore[no-any-return]

    async def _next(self) -> Any:
        try:
            return await self._messages.receive()
        except anyio.EndOfStream:
            self._at_end()
            raise

    async def aclose(self) -> None:
        await self._messages.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


def refusal(wrong: Exception) -> JSONRPCError | None:
    """The JSON-RPC error for a line that is no message: with its request's id where that can still be seen; None for a blank line."""
    faults = wrong.errors(include_url=False, include_context=False) if isinstance(wrong, ValidationError) else []
    invalid = any(fault["type"] == "json_invalid" for fault in faults)
    why = f"This line is no JSON: {faults[0]['msg'].removeprefix('Invalid JSON: ')}" if invalid else "This line is no JSON-RPC message"
    line = next((fault["input"] for fault in faults if isinstance(fault["input"], str)), "") if invalid else ""
    if invalid and not line.strip():
        return None
    found = _ID.match(line)
    error = ErrorData(code=PARSE_ERROR if invalid else INVALID_REQUEST, message=f"{why}; nothing was done.")
    return JSONRPCError(jsonrpc="2.0", id=json.loads(found[1]) if found else None, error=error)
