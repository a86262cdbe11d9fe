"""A person's word on a plan, in both protocol eras of MCP.

Up to revision 2025-11-25 the server asks in the middle of a call (`elicitation/create`); from 2026-07-28 on the call returns the question
and the client calls again with the answer and a one-time `request_state`. Not the SDK's `Resolve`: there one approval could run many
times, and a plan that changed in between would go unnoticed.
"""

from __future__ import annotations

import time
from typing import Any

from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, StrictBool

from proxmox_mcp import text
from proxmox_mcp.errors import Refused
from proxmox_mcp.pipeline import CHANGED, Question
from proxmox_mcp.plan import Plan
from proxmox_mcp.preview import question
from proxmox_mcp.questions import Questions

MODERN = "2026-07-28"


class Approval(BaseModel):
    """The form a person fills in."""

    approve: StrictBool = Field(description="Carry it out")


FORM = {"type": "object", "properties": {"approve": {"type": "boolean", "description": "Carry it out"}}, "required": ["approve"]}


class SdkPeer:
    """The client of one call, as the SDK shows it."""

    def __init__(self, context: Context[Any, Any], questions: Questions) -> None:
        self._context = context
        self._questions = questions
        self._told = 0.0

    async def progress(self, elapsed: float, message: str) -> None:
        """A progress notification, at most one a second; clients that gave no progress token get none."""
        now = time.monotonic()
        if now - self._told >= 1.0:
            self._told = now
            await self._context.report_progress(round(elapsed, 1), message=text.clean(message, 200))

    @property
    def asks_now(self) -> bool:
        """Whether `approve` puts a question to a person: this client can show a form, and no answer came with this call."""
        return self._able and not (self._is_modern and self._reply is not None)

    async def approve(self, plan: Plan) -> bool | Question | None:
        """True only for an explicit yes to exactly this plan; None when this client cannot show a form."""
        if not self._able:
            return None
        if self._is_modern:
            return self._modern(plan)
        try:
            said = await self._context.elicit(question(plan), Approval)
        except ValueError:  # accepted with content that does not fit the form
            return False
        except MCPError:  # the client says that it can ask, and then cannot
            return False
        return said.action == "accept" and said.data.approve

    @property
    def _able(self) -> bool:
        able = self._context.client_capabilities
        ways = able.elicitation if able else None
        return ways is not None and not (ways.form is None and ways.url is not None)

    @property
    def _is_modern(self) -> bool:
        return is_version_at_least(self._context.protocol_version or "2024-11-05", MODERN)

    @property
    def _reply(self) -> tuple[Any, str] | None:
        """The answer that came with the call, and the one-time name of its question."""
        reply, state = (self._context.input_responses or {}).get("approve"), self._context.request_state
        return None if reply is None or state is None else (reply, state)

    def _modern(self, plan: Plan) -> bool | Question:
        if self._reply is None:
            form = ElicitRequestFormParams(message=question(plan), requested_schema=FORM)
            nonce = self._questions.add(plan)
            return Question(InputRequiredResult(input_requests={"approve": ElicitRequest(params=form)}, request_state=nonce))
        reply, state = self._reply
        shown = self._questions.take(state)
        if shown is None:
            raise Refused("this approval was used before or has expired", hint="call again to ask anew")
        if shown != plan:
            raise Refused(CHANGED)
        return isinstance(reply, ElicitResult) and reply.action == "accept" and (reply.content or {}).get("approve") is True
