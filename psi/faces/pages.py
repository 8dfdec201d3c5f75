"""``GET /``: a small page that says what this is and where to go next. Loads nothing, from nowhere."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

import psi

__all__ = ["start_page"]

_STYLE: Final = """
:root { color-scheme: light dark; --quiet: #666; --line: #8884; --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --quiet: #999; --link: #8ab4f8; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
p.version { color: var(--quiet); margin-top: 0; }
a { color: var(--link); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; }
dt { font-family: ui-monospace, monospace; }
dd { margin: 0; }
pre { border: 1px solid var(--line); border-radius: 6px; padding: .7rem; overflow-x: auto; user-select: all; }
"""

# The page's own style is named by its hash, so that nothing else that might get into it is ever applied or run.
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_PLACES: Final = (
    # No link: a browser that follows it sends no query, and is told so.
    ("/graphql", False, "GraphQL, by GET and POST; subscriptions by WebSocket at the same address"),
    ("/sessions", True, "the sessions, as JSON; by POST a new one"),
    ("/ws/sessions/{id}", False, "a session as it happens, by WebSocket"),
    ("/eql", False, "the attribute graph in EQL, by POST, in JSON or EDN"),
    ("/psi-tool", False, "every psi-tool request, by POST, in JSON or EDN"),
    ("/openapi.json", True, "all of this for programs"),
    ("/healthz", True, "whether the service is there"),
    ("/metrics", True, "its numbers, for Prometheus"),
)


async def start_page(request: Request) -> Response:
    base = f"{request.url.scheme}://{request.headers.get('host') or request.url.netloc}"
    return HTMLResponse(_page(base), headers={"content-security-policy": _POLICY})


def _place(path: str, linked: bool, words: str) -> str:
    shown = f'<a href="{path}">{path}</a>' if linked else escape(path)
    return f"<dt>{shown}</dt><dd>{escape(words)}</dd>"


def _page(base: str) -> str:
    places = "\n".join(_place(*place) for place in _PLACES)
    request = '{"action": "session", "op": "create", "name": "First"}'
    curl = f"curl {base}/psi-tool -H 'Content-Type: application/json' -d '{request}'"
    line = f"psi-tool --url {base} session create --name First"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>psi</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>psi</h1>
<p class="version">version {escape(psi.__version__)}</p>
<p>A live, queryable runtime for agent sessions: schedules, turns and sessions as one attribute graph.</p>
<h2>Where to go</h2>
<dl>
{places}
</dl>
<h2>A first request</h2>
<p>A session, on the command line:</p>
<pre>{escape(line)}</pre>
<p>or with curl:</p>
<pre>{escape(curl)}</pre>
</body>
</html>
"""
