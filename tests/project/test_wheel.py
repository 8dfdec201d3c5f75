from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import psi

ROOT = Path(__file__).resolve().parents[2]


def test_an_installed_wheel_holds_the_three_packages_and_gives_the_command(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"psi", "resolvers", "tool"}
    assert {"psi/py.typed", "resolvers/py.typed", "tool/py.typed"} <= set(names)

    home = tmp_path / "home"
    venv.create(home, with_pip=True)
    install = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    said = subprocess.run([str(home / "bin" / "psi-tool"), "--version"], check=True, capture_output=True, text=True)
    assert said.stdout == f"psi {psi.__version__}\n"
