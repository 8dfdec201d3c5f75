"""Runs conformance cases: ``python tests/conformance/run.py CASES.jsonl OUT.jsonl`` (plain or .gz).

One line for each case, in the form of the case's ``expect``. The cases use Pathom's names for the optional param and
for the error maps; they are translated here, at the edge.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from psi.edn import Keyword, ReadError, Symbol, Vector, dumps, freeze, loads
from psi.eql import QueryError
from psi.errors import PsiError
from psi.graph import ERRORS, MUTATION_ERROR, Graph
from psi.graph.errors import (
    AllProvidersFailed,
    AttributeMissing,
    AttributeUnreachable,
    BatchFailed,
    InvalidOperation,
    InvalidResponse,
    LimitExceeded,
    MutationFailed,
    MutationNotFound,
    ResolverFailed,
)
from tests.conformance.operations import Calls, build

PATHOM_ERRORS = Keyword("com.wsscode.pathom3.connect.runner/attribute-errors")
PATHOM_MUTATION_ERROR = Keyword("com.wsscode.pathom3.connect.runner/mutation-error")

# First match wins: the more special errors stand first.
KINDS: tuple[tuple[type[PsiError], str], ...] = (
    (QueryError, "bad-query"),
    (ReadError, "bad-query"),
    (InvalidOperation, "registration"),
    (AttributeUnreachable, "plan/attribute-unreachable"),
    (AttributeMissing, "execute/attribute-missing"),
    (InvalidResponse, "invalid-response"),
    (BatchFailed, "batch-exception"),
    (ResolverFailed, "resolver-exception"),
    (AllProvidersFailed, "or-all-failed"),
    (MutationNotFound, "mutation-not-found"),
    (MutationFailed, "mutation-exception"),
    (LimitExceeded, "stack-overflow"),
)


def run_case(case: Mapping[str, Any], compile_after: int | None = 0) -> dict[str, Any]:
    """The engine's answer to one case."""
    calls: Calls = {}
    try:
        graph = Graph(
            build(case, calls), placeholder_params=bool(case.get("placeholder_params")), compile_after=compile_after
        )
        result = graph.query_now(
            case["query"].replace(f":{PATHOM_ERRORS}", f":{ERRORS}"),
            loads(case["entity"]),
            lenient=case["lenient"],
        )
    except PsiError as error:
        return {"id": case["id"], "error": {"kind": kind_of(error), "message": error.message}, "calls": calls}
    errors: list[dict[str, Any]] = []
    data = without_errors(result, (), errors)
    if not errors and not has_errors(result) and PATHOM_ERRORS not in case["query"]:
        return {"id": case["id"], "ok": dumps(data), "calls": calls}
    return {"id": case["id"], "data": dumps(data), "attr_errors": errors, "calls": calls}


def kind_of(error: PsiError) -> str:
    return next((kind for known, kind in KINDS if isinstance(error, known)), "unknown")


def without_errors(value: Any, path: tuple[Any, ...], errors: list[dict[str, Any]]) -> Any:
    """The data alone; what went wrong is moved to ``errors`` with its path."""
    if isinstance(value, Mapping):
        for attribute, error in value.get(ERRORS, {}).items():
            errors.append(
                {
                    "path": dumps(Vector(path)),
                    "attr": dumps(_named(attribute)),
                    "cause": str(error["cause"]),
                    "nodes": [{"op": n["resolver"], "cause": str(n["cause"])} for n in error.get("nodes", ())],
                }
            )
        if MUTATION_ERROR in value:
            return {PATHOM_MUTATION_ERROR: _mutation_error(value[MUTATION_ERROR])}
        return {
            key: without_errors(below, (*path, _named(key)), errors) for key, below in value.items() if key != ERRORS
        }
    if isinstance(value, list):
        return [without_errors(element, (*path, place), errors) for place, element in enumerate(value)]
    if isinstance(value, tuple):
        return type(value)(without_errors(element, (*path, place), errors) for place, element in enumerate(value))
    if isinstance(value, frozenset):
        # The elements of a set have no place, so nothing in them can be named by a path.
        return frozenset(freeze(without_errors(element, path, [])) for element in value)
    return value


def has_errors(value: Any) -> bool:
    if isinstance(value, Mapping):
        return ERRORS in value or any(map(has_errors, value.values()))
    return isinstance(value, list | tuple | frozenset) and any(map(has_errors, value))


def _mutation_error(error: Mapping[str, Any]) -> dict[str, str]:
    known = error["code"] == MutationNotFound.code
    message = f"Mutation {error['data']['mutation']} not found" if known else error["data"]["reason"]
    return {"exception/class": "clojure.lang.ExceptionInfo", "exception/message": message}


def _named(key: Any) -> Any:
    return Keyword(key) if isinstance(key, str) and not isinstance(key, Symbol) else key


def cases_in(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: run.py CASES.jsonl[.gz] OUT.jsonl", file=sys.stderr)
        return 2
    with Path(arguments[1]).open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(run_case(case)) + "\n" for case in cases_in(Path(arguments[0])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
