"""specialize-shapes: give open sizes of the model's inputs the numbers that are asked for.

    %x : tensor<batch x 3 x ? x ?>, {"batch": 1, "x": (None, None, 224, 224)}
        ->   %x : tensor<1x3x224x224>

Names of sizes hold for every input, shapes for the input of that name; None leaves a size as it is.
Types of inner values are inferred again. Bits are preserved for inputs of these sizes; others are
not accepted any more. Without numbers nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias, cast

from xdsl.ir import BlockArgument

from foldline.dialects.onnx.attributes import InterfaceAttr
from foldline.dialects.onnx.structure import interface, main_graph, terminator
from foldline.dialects.onnx.types import Dim, dims_of, with_dims
from foldline.stages.context import PassContext
from foldline.stages.pass_base import GraphPass
from foldline.stages.passes.shapes.infer_shapes import InferShapes
from foldline.support.errors import InvalidArgumentError
from foldline.support.passes import PASSES
from foldline.support.suggest import did_you_mean

Sizes: TypeAlias = "tuple[tuple[str, int | tuple[int | None, ...]], ...]"


@dataclass(frozen=True)
class SpecializeShapes(GraphPass):
    """Pin open sizes of inputs."""

    name = "specialize-shapes"
    INFO: ClassVar = PASSES["specialize-shapes"]

    sizes: Sizes = ()
    """Pairs of the name of a size and a number, or of an input and its shape; or a mapping."""

    def __post_init__(self) -> None:
        given: Any = self.sizes
        pairs = cast("Mapping[str, Any]", given).items() if isinstance(given, Mapping) else given
        frozen = tuple((n, s if isinstance(s, int) else tuple(s)) for n, s in pairs)
        object.__setattr__(self, "sizes", frozen)

    def run(self, context: PassContext) -> None:
        """Change types of inputs, then infer.

        Raises InvalidArgumentError for a name that the model does not have, a shape of another
        rank, and a number where the model fixes another one.
        """
        block = main_graph(context.module).body.block
        infos = interface(block).argument_infos()
        arguments = {info.name: argument for info, argument in zip(infos, block.args, strict=True)}
        sizes = {name: size for name, size in self.sizes if name not in context.pinned}
        asked = _asked(sizes, arguments)
        context.pinned.update(name for name, size in sizes.items() if isinstance(size, int))
        for name, dims in asked.items():
            argument = arguments[name]
            pinned = with_dims(argument.type, dims)
            context.rewriter.set_type(argument, pinned)
            end = terminator(block)
            inputs = tuple(
                info.with_type(pinned) if info.name == name else info
                for info in end.interface.data.inputs
            )
            end.properties["interface"] = InterfaceAttr(replace(end.interface.data, inputs=inputs))
        if asked:
            InferShapes(trusted=True).run(context)


def _asked(
    sizes: Mapping[str, int | Sequence[int | None]], arguments: Mapping[str, BlockArgument]
) -> dict[str, tuple[Dim, ...]]:
    """The sizes of each input that gets others."""
    named = {name: dims_of(argument.type) for name, argument in arguments.items()}
    known = {dim for dims in named.values() for dim in dims or () if isinstance(dim, str)}
    for name, asked in sizes.items():
        valid = known if isinstance(asked, int) else named.keys()
        if name not in valid:
            kind = "size" if isinstance(asked, int) else "input"
            hint = did_you_mean(name, valid)
            raise InvalidArgumentError(f"specialize-shapes: no {kind} is called '{name}'{hint}")
    found: dict[str, tuple[Dim, ...]] = {}
    for name, dims in named.items():
        shape = sizes.get(name)
        new = dims if shape is None or isinstance(shape, int) else _pinned(name, dims, shape)
        if new is not None:
            new = tuple(_numbered(dim, sizes) for dim in new)
        if new is not None and new != dims:
            found[name] = new
    return found


def _numbered(dim: Dim, sizes: Mapping[str, int | Sequence[int | None]]) -> Dim:
    number = sizes.get(dim) if isinstance(dim, str) else None
    return number if isinstance(number, int) else dim


def _pinned(
    name: str, dims: tuple[Dim, ...] | None, shape: Sequence[int | None]
) -> tuple[Dim, ...]:
    if dims is None:
        return tuple(shape)
    if len(dims) != len(shape):
        raise InvalidArgumentError(
            f"specialize-shapes: '{name}' has {len(dims)} sizes, {len(shape)} are given"
        )
    for given, fixed in zip(shape, dims, strict=True):
        if given is not None and isinstance(fixed, int) and fixed >= 0 and fixed != given:
            raise InvalidArgumentError(
                f"specialize-shapes: '{name}' has size {fixed}, {given} is given"
            )
    return tuple(d if g is None else g for g, d in zip(shape, dims, strict=True))
