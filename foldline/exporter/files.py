"""Model files: complete or not there at all, weights beside them where they do not fit."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from google.protobuf.message import EncodeError
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from foldline.dialects.onnx.structure import DefaultOp, InitializerOp
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.exporter.model import ValueInfoPolicy, export_model
from foldline.exporter.tensors import ExternalWriter
from foldline.support.errors import InvalidArgumentError, ResourceLimit

MAX_MESSAGE_BYTES = (1 << 31) - 1
"""The most one protobuf message can hold."""


def write_model(
    module: ModuleOp,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    external_data: bool = False,
    value_info: ValueInfoPolicy = "keep",
    unique_nodes: bool = False,
    training: bool = True,
) -> None:
    """Write the model of a module to `path`.

    Weights go to a file beside it if asked for, or if one message cannot hold them; its name comes
    from its content. Both are written under temporary names and renamed, data first, so a failure
    leaves nothing behind. Raises InvalidArgumentError if `path` exists and `force` is not set.
    """
    target = Path(path)
    if target.exists() and not force:
        raise InvalidArgumentError(f"'{target}' exists; use --force (force=True) to replace it")
    if not target.parent.is_dir():
        raise InvalidArgumentError(f"folder '{target.parent}' does not exist")
    export = partial(
        export_model,
        module,
        value_info=value_info,
        unique_nodes=unique_nodes,
        training=training,
    )
    if external_data or _weight_bytes(module) > MAX_MESSAGE_BYTES // 2:
        _write_external(export, target)
    else:
        _replace(target, serialised(export()))


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
    """Two passes: the data file's name hangs on its content, and the message names the file."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            export(tensors=ExternalWriter(file, "pending"))
        location = f"{target.stem}.{_digest(temporary)}.data"
        with open(os.devnull, "wb") as nowhere:
            writer = ExternalWriter(nowhere, location)
            data = serialised(export(tensors=writer))
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target.parent / location)
        _replace(target, data)
    finally:
        temporary.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _weight_bytes(module: ModuleOp) -> int:
    total = 0
    for op in module.walk():
        value = op.properties.get("value")
        if isinstance(value, TensorAttr):
            is_stored = isinstance(op, InitializerOp | DefaultOp)
            total += value.data.array.nbytes if is_stored else value.data.stored_bytes
    return total
