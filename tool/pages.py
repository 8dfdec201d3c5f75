"""Writes the pages that are made from declarations: ``python -m tool.pages``, or ``make docs``.

Says nothing of its own about psi-tool or the graph, and writes nothing but these pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from psi.graph import Mutation
from psi.graph.attributes import Attribute, Many, One, Type
from psi.settings import DECLARED, Setting
from resolvers import ATTRIBUTES, OPERATIONS, ROOT_SEEDS
from tool.manual import manual
from tool.schema import reference

__all__ = ["attributes", "main", "pages", "settings"]

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_INTRODUCTION: Final = (
    "Every attribute of psi's own graph and every mutation. Ask with `await psi.query(...)` or with psi-tool's "
    "[query](psi-tool.md#query); the language is [EQL](reference.md#eql). A query starts from "
    f"{_names(ROOT_SEEDS)} of the invoking session, and from `entity` where one is given. The graph describes "
    "itself, too: see `psi.graph`."
)


def pages() -> dict[str, str]:
    """Each page by the name of its file."""
    return {
        "psi-tool.md": reference(),
        "cli-reference.md": manual(),
        "attributes.md": attributes(),
        "settings.md": settings(),
    }


def attributes() -> str:
    """What psi's own graph can be asked, as Markdown."""
    lines = [
        "# What the graph knows",
        "",
        "<!-- Made by `make docs` from the declarations in resolvers/; a test compares. -->",
        "",
        _INTRODUCTION,
        "",
        "An arrow leads to other entities, known by the attribute behind it. Nullable: the answer may be nil.",
    ]
    # In the order of their declaration; an attribute that a neighbour declares is listed with its own namespace.
    spaces = list(dict.fromkeys(attribute.namespace for attribute in ATTRIBUTES.values()))
    ordered = sorted(ATTRIBUTES.values(), key=lambda attribute: spaces.index(attribute.namespace))
    for namespace, found in groupby(ordered, key=lambda attribute: attribute.namespace):
        lines += ["", f"## {namespace}", "", "| attribute | type | nullable | what |", "|---|---|---|---|"]
        lines += map(_row, found)
    lines += ["", "## Mutations", "", *_mutations()]
    return "\n".join([*lines, ""])


def _row(attribute: Attribute) -> str:
    nullable = "yes" if attribute.nullable else ""
    return f"| `{attribute.name}` | {_type(attribute.type)} | {nullable} | {attribute.doc} |"


def _type(kind: Type) -> str:
    match kind:
        case One(identity):
            return f"→ `{identity}`"
        case Many(identity):
            return f"→ many `{identity}`"
    return str(kind)


def _mutations() -> Iterator[str]:
    yield (
        'Called in a query, `[(psi.scheduler/cancel {:schedule-id "sch-…"})]`, or with psi-tool\'s '
        "[mutate](psi-tool.md#mutate). Params mean what the keys of the same name mean to psi-tool."
    )
    yield from ("", "| mutation | params | answers | what |", "|---|---|---|---|")
    for operation in OPERATIONS:
        if isinstance(operation, Mutation):
            doc = " ".join(operation.doc.replace("``", "`").split())
            yield f"| `{operation.name}` | {_names(operation.params)} | {_names(operation.output)} | {doc} |"


def settings() -> str:
    """How the service is set up, as Markdown."""
    lines = [
        "# Settings",
        "",
        "<!-- Made by `make docs` from the declarations in psi/settings.py; a test compares. -->",
        "",
        "A setting is a flag of `psi-tool serve` or an environment variable; the flag wins. A variable that is set to",
        "nothing counts as not set. What cannot be used is refused before anything starts, all of it at once: each",
        "value by its flag or variable, with what came and what is accepted. So is a `PSI_…` variable that looks like",
        "one of these and is not: a limit that one only believes in would be worse than none.",
        "",
        "| flag | variable | default | what |",
        "|---|---|---|---|",
        *map(_setting, DECLARED),
        "",
        "## What each accepts",
        "",
        "| setting | accepts |",
        "|---|---|",
        *(f"| `{setting.name}` | {setting.kind.accepts} |" for setting in DECLARED),
        "",
        "`PSI_URL`, `PSI_SESSION` and `PSI_TOKEN` are read by the command line when it talks to a service, and not by",
        "the service. Why the limits are there, and what they answer, is said in [security](security.md).",
    ]
    return "\n".join([*lines, ""])


def _setting(setting: Setting) -> str:
    flag = f"`{setting.flag}`"
    if isinstance(setting.default, bool):
        flag = f"{flag}, `--no-{setting.flag.removeprefix('--')}`"
    elif setting.kind.metavar:
        flag = f"`{setting.flag} {setting.kind.metavar}`".replace("|", "\\|")
    return f"| {flag} | `{setting.variable}` | {setting.kind.shows(setting.default)} | {setting.doc} |"


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
