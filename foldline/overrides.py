"""What options change in a model's interface before stages: pinned sizes, frozen inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import Rewriter

from foldline.dialects.onnx.attributes import InterfaceAttr, ValueInfo
from foldline.dialects.onnx.structure import (
    DefaultOp,
    InitializerOp,
    interface,
    main_graph,
    terminator,
)
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.onnx.types import Dim, dims_of, with_dims
from foldline.support.errors import InvalidArgumentError
from foldline.support.suggest import did_you_mean


def pin_shapes(module: ModuleOp, shapes: Mapping[str, tuple[int | None, ...]]) -> None:
    """Give graph inputs the sizes asked for; None leaves a dimension as it is.

    Raises InvalidArgumentError for an unknown input, another rank, or a size the model fixes.
    """
    if not shapes:
        return
    arguments = _arguments(module)
    for name, shape in shapes.items():
        if name not in arguments:
            hint = did_you_mean(name, arguments)
            raise InvalidArgumentError(f"--input-shape {name}: the model has no such input{hint}")
        argument = arguments[name]
        pinned = with_dims(argument.type, _pinned(name, dims_of(argument.type), shape))
        Rewriter.replace_value_with_new_type(argument, pinned)
        inputs = interface(main_graph(module).body.block).inputs
        _set_inputs(module, tuple(i.with_type(pinned) if i.name == name else i for i in inputs))


def _pinned(
    name: str, dims: tuple[Dim, ...] | None, shape: tuple[int | None, ...]
) -> tuple[Dim, ...]:
    if dims is None:
        return shape
    if len(dims) != len(shape):
        raise InvalidArgumentError(
            f"--input-shape {name}: {len(shape)} dimensions given, the model has {len(dims)}"
        )
    for given, known in zip(shape, dims, strict=True):
        if given is not None and isinstance(known, int) and known >= 0 and known != given:
            raise InvalidArgumentError(
                f"--input-shape {name}: size {given} given where the model fixes {known}"
            )
    return tuple(d if g is None else g for g, d in zip(shape, dims, strict=True))


def freeze_initializers(module: ModuleOp) -> None:
    """Make overridable initializers constants: their inputs leave the interface."""
    graph = main_graph(module)
    block = graph.body.block
    frozen = [op for op in block.ops if isinstance(op, DefaultOp)]
    if not frozen:
        return
    infos = dict(zip(block.args, interface(block).inputs, strict=True))
    gone: list[BlockArgument] = []
    for op in frozen:
        argument = cast(BlockArgument, op.argument)
        constant = InitializerOp.create(
            result_types=[cast(TensorAttr, op.properties["value"]).type],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        block.insert_op_before(constant, op)
        op.detach()
        op.erase()
        argument.replace_all_uses_with(constant.results[0])
        gone.append(argument)
        infos.pop(argument)
    for argument in gone:
        block.erase_arg(argument)
    _set_inputs(module, tuple(infos.values()))


def _arguments(module: ModuleOp) -> dict[str, SSAValue]:
    block = main_graph(module).body.block
    infos = interface(block).argument_infos()
    return {info.name: argument for info, argument in zip(infos, block.args, strict=True)}


def _set_inputs(module: ModuleOp, inputs: tuple[ValueInfo, ...]) -> None:
    end = terminator(main_graph(module).body.block)
    end.properties["interface"] = InterfaceAttr(replace(end.interface.data, inputs=inputs))
