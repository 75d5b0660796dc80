"""`foldline gui`: xDSL's terminal interface for building pipelines, on our dialects and passes."""

from __future__ import annotations

from importlib.util import find_spec

import click

from foldline.support.errors import InvalidArgumentError

NEEDED = ("textual", "pyclip")


@click.command("gui")
@click.argument("file", required=False)
@click.option("-p", "--passes", default="", help="Passes to begin with: 'infer-shapes,prune'.")
def gui_command(file: str | None, passes: str) -> None:
    """Put passes together on FILE (.onnx, or text of the dialects) and see what they do."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InvalidArgumentError(
            f"foldline gui needs {' and '.join(missing)}: pip install 'foldline[gui]'"
        )
    from foldline.workbench.gui import gui

    gui(file, passes).run()
