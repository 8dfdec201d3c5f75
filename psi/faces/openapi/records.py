"""What sessions, their messages and runs look like in bodies."""

from __future__ import annotations

from typing import Any, Final

from psi.core.config import BREAKPOINTS, THINKING_LEVELS
from psi.core.message import ROLES
from psi.core.session import Phase
from psi.core.turn import State
from psi.faces.inputs import LARGEST_IMAGE, LONGEST_CONTENT, MOST_FILES, MOST_IMAGES
from psi.faces.openapi.words import COUNT, INSTANT, INSTANT_OR_NULL, NAME, TEXT, TEXT_OR_NULL, WORD, closed, ref, told

__all__ = ["SCHEMAS"]

# What an image looks like: base64, alone or in a data URI.
_IMAGE: Final = "^(data:image/(png|jpeg|gif|webp);base64,)?([A-Za-z0-9+/]{4})+$"
_SUMMARY: Final[dict[str, Any]] = {
    "id": {"type": "string", "description": "`ses-…`"},
    "name": TEXT_OR_NULL,
    "phase": {"type": "string", "enum": [str(phase.value) for phase in Phase]},
    "owner": {"type": "string", "description": "the user it belongs to"},
    "created_at": INSTANT,
    "updated_at": INSTANT,
    "message_count": COUNT,
    "pending_schedules": COUNT,
    "pending_recall": {"type": "null", "description": "the recall that waits; this version has none"},
}

_RUN_STATES: Final = [str(state.value) for state in State]
_TEXT_PART: Final = told({"type": {"const": "text"}, "text": TEXT})
_IMAGE_PART: Final = told(
    {
        "type": {"const": "image"},
        "media_type": {"type": "string", "pattern": "^image/[a-z0-9][a-z0-9.+-]{0,100}$"},
        "data": {"type": "string", "pattern": "^([A-Za-z0-9+/]{4})+$", "description": "base64"},
    }
)

SCHEMAS: Final[dict[str, Any]] = {
    "SessionConfig": closed(
        {
            "session_name": NAME,
            "system_prompt": TEXT_OR_NULL,
            "developer_prompt": TEXT_OR_NULL,
            "developer_prompt_source": WORD,
            "model": {
                "anyOf": [
                    {"type": "string", "pattern": "^[A-Za-z0-9._/-]+:[A-Za-z0-9._:/-]+$"},
                    told({name: {"type": "string", "pattern": r"\S"} for name in ("provider", "id")}),
                ]
            },
            "thinking_level": {"type": "string", "enum": list(THINKING_LEVELS)},
            "skills": {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
            "tool_ids": {
                "type": "array",
                "items": {"type": "string", "enum": ["psi-tool"]},
                "description": "tools that the runtime has; psi-tool always is one",
            },
            "preloaded_messages": {
                "type": "array",
                "items": told(
                    {
                        "role": {"type": "string", "enum": list(ROLES)},
                        "content": {
                            "anyOf": [
                                {"type": "string", "minLength": 1},
                                {"type": "array", "minItems": 1, "items": {"anyOf": [_TEXT_PART, _IMAGE_PART]}},
                            ]
                        },
                    }
                ),
            },
            "cache_breakpoints": {"type": "array", "items": {"type": "string", "enum": list(BREAKPOINTS)}},
            "prompt_component_selection": closed(
                {
                    "components": {"type": "array", "items": WORD},
                    **{
                        name: {"type": "array", "items": TEXT}
                        for name in ("tool_names", "skill_names", "extension_prompt_contributions")
                    },
                    "agents_md?": {"type": "boolean"},
                }
            ),
        },
        description="a session-config; keys in kebab-case are taken as well, and so are all forms of docs/psi-tool.md",
    ),
    "SessionRequest": closed({"name": NAME, "config": ref("SessionConfig")}),
    "SessionSummary": told(_SUMMARY),
    "Session": told({**_SUMMARY, "active_run_id": TEXT_OR_NULL}),
    "SessionWithMessages": told(
        {
            **_SUMMARY,
            "active_run_id": TEXT_OR_NULL,
            "messages": {"type": "array", "items": ref("Message")},
            "messages_next": {
                "type": ["integer", "null"],
                "description": "where there is more: what `messages_after` has to be to go on",
            },
            "messages_previous": {
                "type": ["integer", "null"],
                "description": "with `newest`, where there is more: what `messages_before` has to be to go on",
            },
        }
    ),
    "Message": told(
        {
            "index": {**COUNT, "description": "its place in the history"},
            "role": {"type": "string", "enum": list(ROLES)},
            "content": {"type": "string", "description": "its text"},
            "images": {
                "type": "array",
                "items": told({"media_type": TEXT_OR_NULL, "size": {**COUNT, "description": "bytes"}}),
            },
            "created_at": INSTANT_OR_NULL,
            "source": {**TEXT_OR_NULL, "description": "where its turn comes from: `user`, `scheduled`"},
            "run_id": TEXT_OR_NULL,
            "schedule_id": {**TEXT_OR_NULL, "description": "the schedule that it was injected by"},
            "label": {**TEXT_OR_NULL, "description": "that schedule's label"},
            "closure": {**TEXT_OR_NULL, "description": "how the turn ended, where that was not with an answer"},
        }
    ),
    "MessageRequest": closed(
        {
            "content": {"type": "string", "pattern": r"\S", "maxLength": LONGEST_CONTENT},
            "images": {
                "type": ["array", "null"],
                "maxItems": MOST_IMAGES,
                "items": {"type": "string", "pattern": _IMAGE},
                "description": f"base64 or data URI, at most {LARGEST_IMAGE >> 20} MiB each when decoded",
            },
            "files": {
                "type": ["array", "null"],
                "maxItems": MOST_FILES,
                "items": closed(
                    {
                        "name": TEXT_OR_NULL,
                        "path": {"type": "string", "minLength": 1},
                        "size": COUNT,
                        "sha256": TEXT,
                    },
                    ["path"],
                ),
                "description": "uploads of one's own, as `POST /uploads` has answered them",
            },
        },
        ["content"],
    ),
    "Run": told(
        {
            "run_id": TEXT,
            "session_id": TEXT,
            "state": {"type": "string", "enum": _RUN_STATES},
            "source": TEXT,
            "started_at": INSTANT,
            "finished_at": INSTANT_OR_NULL,
            "answer": {**TEXT_OR_NULL, "description": "the closure that it left in the history"},
            "error": {"anyOf": [{"type": "null"}, told({"class": TEXT_OR_NULL, "message": TEXT})]},
            "message_index": {"type": ["integer", "null"], "description": "where in the history the closure stands"},
            **dict.fromkeys(("context_tokens", "max_context_tokens", "token_count", "tool_call_count"), COUNT),
        }
    ),
    "Upload": told(
        {
            "name": TEXT,
            "path": {"type": "string", "description": "what `files` of a message takes"},
            "size": {**COUNT, "description": "bytes"},
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        }
    ),
}
