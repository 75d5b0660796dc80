"""`import foldline.kernels` registers everything: no module of the folder is left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "kernels"

COUNT = "from foldline.kernels.registry import all_kernels\nprint(len(all_kernels()))"


def registered(imports: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}\n{COUNT}"],
        cwd=KERNELS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_the_package_imports_every_module_that_registers() -> None:
    modules = sorted(file.stem for file in KERNELS.glob("*.py") if file.stem != "__init__")
    one_by_one = "\n".join(f"import foldline.kernels.{module}" for module in modules)
    assert registered("import foldline.kernels") == registered(one_by_one) > 200
