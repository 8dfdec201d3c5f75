"""``POST /psi-tool``: a psi-tool request in the body, its envelope in the answer. Knows no action."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from psi.edn import Keyword
from psi.faces.wire import Unreadable, answer, caller_of, form_for, read_body, status_of, wanted
from psi.runtime import Psi

__all__ = ["ToolFace"]


class ToolFace:
    def __init__(self, psi: Psi) -> None:
        self._psi = psi

    async def call(self, request: Request) -> Response:
        """200 whenever the request could be read: how it went is what the envelope says."""
        caller = caller_of(request)
        try:
            asked, came = await read_body(request)
        except Unreadable as wrong:
            return answer(_unread(wrong), form_for(request), status_of(wrong))
        form = wanted(request.headers.get("accept"), came)  # before anything happens that could not be told
        return answer(await self._psi.tool(asked, caller=caller), form)


def _unread(wrong: Unreadable) -> dict[str, Any]:
    """The envelope of a request that nobody has understood a word of."""
    return {
        "psi-tool/action": None,
        "psi-tool/overall-status": Keyword("error"),
        "psi-tool/duration-ms": 0,
        "psi-tool/error": {
            "message": wrong.message,
            "class": type(wrong).__name__,
            "code": wrong.code,
            "phase": Keyword("validate"),
            "data": wrong.facts(),
        },
    }
