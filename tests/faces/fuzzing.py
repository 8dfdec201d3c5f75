"""What schemathesis does not know by itself: bodies in EDN. Loaded by it, named in the environment.

Texts that are EDN of the kinds that requests are made of, and texts that are nearly that.
"""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import strategies as st

from psi.edn import Keyword, Symbol, dumps
from tool.declarations import ACTIONS

__all__ = ["as_it_is"]


@schemathesis.serializer("application/edn")
def as_it_is(context: Any, value: Any) -> bytes:
    """A text goes as it is. What schemathesis makes of "not a text" is sent as something that is not EDN either."""
    return (value if isinstance(value, str) else "#not-a-text").encode("utf-8", "ignore")


_EXAMPLES = [
    example for action in ACTIONS for example in (action.example, *(op.example for op in action.ops)) if example
]

_names = st.sampled_from(
    ["action", "op", "query", "entity", "strict", "psi.system/version", "psi.scheduler/pending-count", "psi.nope/x"]
)
_atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | _names.map(Keyword)
    | st.sampled_from(["psi.scheduler/create", "..."]).map(Symbol)
)
_values = st.recursive(
    _atoms, lambda below: st.lists(below, max_size=4) | st.dictionaries(_names, below, max_size=4), max_leaves=12
)
_texts = st.sampled_from(_EXAMPLES) | _values.map(dumps)
_broken = st.builds(lambda text, cut: text[:cut], _texts, st.integers(0, 40)) | st.text(max_size=20)

schemathesis.openapi.format("edn", _texts | _broken)
