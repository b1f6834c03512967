"""Run the fast tests on every Python version that the packages' classifiers name.

    tools/matrix.py [3.12 ...]

Each version gets an environment of its own (.venv-3.12). An interpreter is found as `python3.12` on the path or among
pyenv's versions; a version without one fails the run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = sorted((ROOT / "packages").glob("*/pyproject.toml"))
QUICK = "not control_plane and not faults and not peers and not wheels"


def versions(pyproject: Path) -> list[str]:
    """Return the Python versions that a package's classifiers name."""
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject.read_text())


def interpreter(version: str) -> str | None:
    """Return an interpreter of a version, or None."""
    found = shutil.which(f"python{version}")
    if found and _runs(found, version):
        return found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = sorted(pyenv.glob(f"{version}.*/bin/python"))
    return str(candidates[-1]) if candidates else None


def _runs(program: str, version: str) -> bool:
    """Report whether a program is that interpreter: pyenv's shims exist for versions that are not selected."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def test(version: str) -> bool:
    """Install everything for one version and run the fast tests; report whether they passed."""
    python = interpreter(version)
    if python is None:
        sys.stderr.write(f"matrix: no interpreter for Python {version} (install python{version}, or pyenv install)\n")
        return False
    folder = ROOT / f".venv-{version}"
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    editable = [argument for project in PACKAGES for argument in ("--editable", str(project.parent))]
    pins = [
        "--constraint",
        str(ROOT / "constraints" / "dev.txt"),
        "--requirement",
        str(ROOT / "constraints" / "dev.in"),
    ]
    install = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *pins, *editable], check=True)
    sys.stdout.write(f"Python {version}\n")
    sys.stdout.flush()
    done = subprocess.run([str(folder / "bin" / "pytest"), "-m", QUICK, "-n", "2"], cwd=ROOT, check=False)
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    """Test the versions that are named, or all."""
    results = {version: test(version) for version in arguments or versions(PACKAGES[0])}
    for version, passed in results.items():
        sys.stdout.write(f"Python {version}: {'passed' if passed else 'FAILED'}\n")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
