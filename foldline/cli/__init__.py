"""The command line: `foldline compile | optimize | check | run | passes | ops | options`."""

from foldline.cli.root import main, root

__all__ = ["main", "root"]
