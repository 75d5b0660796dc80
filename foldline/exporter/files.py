"""Model files: complete or not there at all, weights beside them where they do not fit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from google.protobuf.message import EncodeError
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import DefaultOp, InitializerOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.exporter.graph import ValueInfoPolicy
from foldline.exporter.model import FusedPolicy, export_model
from foldline.exporter.temporary import clear_stale, temporary_beside
from foldline.exporter.tensors import ExternalWriter
from foldline.support.errors import InvalidArgumentError, ResourceLimit
from foldline.support.progress import tell

MAX_MESSAGE_BYTES = (1 << 31) - 1
"""The most one protobuf message can hold."""


def write_model(
    module: ModuleOp,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    external_data: bool = False,
    value_info: ValueInfoPolicy = "keep",
    fused: FusedPolicy = "standard",
    unique_nodes: bool = False,
    training: bool = True,
) -> None:
    """Write the model of a module to `path`.

    Weights go to a file beside it if asked for, or if one message cannot hold them; its name comes
    from its content. Both are written under temporary names and renamed, data first, so a failure
    leaves nothing behind; what killed runs left beside `path` is removed.
    Raises InvalidArgumentError if `path` exists and `force` is not set.
    """
    target = Path(path)
    if target.exists() and not force:
        raise InvalidArgumentError(f"'{target}' exists; use --force (force=True) to replace it")
    if not target.parent.is_dir():
        raise InvalidArgumentError(f"folder '{target.parent}' does not exist")
    _clear_stale(target)
    tell(f"writing {target.name}")
    export = partial(
        export_model,
        module,
        value_info=value_info,
        fused=fused,
        unique_nodes=unique_nodes,
        training=training,
    )
    if external_data or _weight_bytes(module) > MAX_MESSAGE_BYTES // 2:
        _write_external(export, target)
    else:
        replace_file(target, serialised(export()))


def serialised(proto: ModelProto) -> bytes:
    """The bytes of a message. Raises ResourceLimit above the size one message can have."""
    try:
        return proto.SerializeToString(deterministic=True)
    except EncodeError as error:
        raise ResourceLimit(
            "the model is larger than the 2 GiB of one protobuf message; write it with "
            "--external-data (external_data=True)"
        ) from error


def _write_external(export: Callable[..., ModelProto], target: Path) -> None:
    """Two passes: the data file's name hangs on its content, and the message names the file.

    The message is written before the data is renamed, so that what is left by a process killed in
    between says which data file nobody needs.
    """
    with temporary_beside(target) as weights:
        with open(weights, "xb") as file:
            export(tensors=ExternalWriter(file, "pending"))
            _flush(file)
        digest = _digest(weights)
        location = _location(target, digest)
        with open(os.devnull, "wb") as nowhere:
            data = serialised(export(tensors=ExternalWriter(nowhere, location)))
        with temporary_beside(target, digest) as message:
            _write(message, data)
            try:
                os.replace(weights, target.parent / location)
                os.replace(message, target)
            finally:
                _drop_unnamed(target, digest)


def _location(target: Path, digest: str) -> str:
    return f"{target.stem}.{digest}.data"


def _clear_stale(target: Path) -> None:
    """Remove what killed runs left: temporary files, and data that no model came to name."""
    for digest in clear_stale(target):
        _drop_unnamed(target, digest)


def _drop_unnamed(target: Path, digest: str) -> None:
    """Remove a data file unless the model names it."""
    location = _location(target, digest)
    if not target.exists() or location.encode() not in target.read_bytes():
        (target.parent / location).unlink(missing_ok=True)


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def replace_file(target: Path, data: bytes) -> None:
    """Write a file that appears complete or not at all, in place of what is there."""
    with temporary_beside(target) as temporary:
        _write(temporary, data)
        os.replace(temporary, target)


def _write(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        _flush(file)


def _flush(file: IO[bytes]) -> None:
    """See to it that what is renamed is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def _weight_bytes(module: ModuleOp) -> int:
    total = 0
    for op in module.walk():
        value = op.properties.get("value")
        if isinstance(value, TensorAttr):
            is_stored = isinstance(op, InitializerOp | DefaultOp)
            total += value.data.array.nbytes if is_stored else value.data.stored_bytes
    return total
