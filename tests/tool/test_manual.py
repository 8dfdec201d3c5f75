"""The how-to page of the command line is true: its commands are run, in a terminal, against a service."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.snippets import blocks
from tests.faces.serving import serving
from tests.tool.cli import environment, in_terminal
from tool.arguments import read
from tool.commands import COMMANDS
from tool.manual import manual

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
MARK = "<<<done>>>"


def commands() -> list[tuple[str, str]]:
    """Each command of the page with what it says that comes out."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(PAGE):
        if block.info == "console":
            for line in block.source.splitlines():
                if line.startswith("$ "):
                    found.append((line[2:], []))
                else:
                    found[-1][1].append(line)
    return [(command, "\n".join(lines)) for command, lines in found]


def fits(said: str, shown: str) -> bool:
    """Whether that was shown, with anything for ``…``. How far columns are apart does not count."""
    pattern = ".*".join(re.escape(" ".join(part.split(" "))) for part in said.split("…"))
    squeezed = re.sub(r" +", " ", shown)
    return re.fullmatch(re.sub(r"(\\ )+", r"\\ ", pattern), squeezed, re.DOTALL) is not None


async def test_the_commands_of_the_page_print_what_it_says(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    listed = commands()
    assert len(listed) > 15
    script = tmp_path / "page"
    script.write_text(
        "".join(
            [
                f'psi-tool() {{ {shlex.quote(sys.executable)} -m tool.main "$@"; }}\n',
                f'python3() {{ {shlex.quote(sys.executable)} "$@"; }}\n',
                *(f"{command}\nprintf '%s\\n' '{MARK}'\n" for command, _ in listed),
            ]
        ),
        encoding="utf-8",
    )
    async with serving(real_time=True) as served:
        env = environment(PSI_URL=served.url, PYTHONPATH=str(ROOT), NO_COLOR="1")
        inside = f"cd {shlex.quote(str(tmp_path))} && . ./page"
        async with in_terminal("-c", inside, env=env, command=(bash, "--norc")) as terminal:
            ended = await terminal.ended()
    shown = [each.strip("\n") for each in ended.plain.split(f"{MARK}\n")]
    assert len(shown) == len(listed) + 1, ended.plain
    for (command, said), text in zip(listed, shown, strict=False):
        lines = "\n".join(line.rstrip() for line in text.splitlines())
        assert fits(said, lines), f"$ {command}\n{lines}\n-- but the page says\n{said}"


def test_each_command_on_the_page_can_be_typed() -> None:
    for block in blocks(PAGE):
        for line in block.source.splitlines() if block.info == "sh" else ():
            inside = re.search(r"psi-tool [^)|>#\"]*", line)
            if inside is not None and "…" not in inside[0]:
                assert read(shlex.split(inside[0])[1:]) is not None


def test_the_reference_has_every_command_and_every_option() -> None:
    page = manual()
    for command in COMMANDS:
        assert f"# {command.name}\n" in page
        for option in command.options:
            assert option.doc in page
        assert all(example in page for example in command.examples)
