"""From the plan dialect to routines: slots for values, kernels for calls, once for each body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Block, SSAValue

from foldline.dialects.onnx.op import node_name, plain_value, result_names
from foldline.dialects.onnx.schema import signature
from foldline.dialects.onnx.structure import NoneOp
from foldline.dialects.onnx.types import ABSENT, dims_of, element_of, element_type
from foldline.dialects.plan import CallOp, ConstantOp, ReturnOp
from foldline.kernels.compact import widening_inputs
from foldline.kernels.control_flow import ValueType
from foldline.kernels.registry import Grade, Kernel, find_kernel
from foldline.lowering.bodies import BodyProgram
from foldline.lowering.routine import Layout, Routine
from foldline.lowering.steps import BoundCall
from foldline.support.errors import UnsupportedOperator

Slots = dict[SSAValue, int]


def bind_block(
    block: Block, captures: int = 0, declared: Sequence[ValueType] = ()
) -> tuple[Routine, Slots]:
    """The routine of a block, and the slot of each of its values.

    The last `captures` arguments are what a body takes from outside. `declared` are types of the
    results, used where the block itself knows less.
    """
    calls = [op for op in block.ops if isinstance(op, CallOp)]
    constants = [op for op in block.ops if isinstance(op, ConstantOp)]
    own = len(block.args) - captures
    groups: tuple[list[SSAValue], ...] = (
        [op.output for op in constants],
        [result for call in calls if call.is_once for result in call.results],
        list(block.args[own:]),
        list(block.args[:own]),
        [result for call in calls if not call.is_once for result in call.results],
    )
    slots: Slots = {value: slot for slot, value in enumerate(chain(*groups), 1)}
    slots.update((op.results[0], 0) for op in block.ops if isinstance(op, NoneOp))
    first_capture = 1 + len(groups[0]) + len(groups[1])
    first_input = first_capture + captures
    returned = _returned(block)
    layout = Layout(
        slice(first_input, first_input + own),
        slice(first_capture, first_input),
        tuple(slots[value] for value in returned),
        1 + sum(map(len, groups)),
    )
    bound = {call: _bound(call, slots, first_capture) for call in calls}
    results = [value_type(value.type) for value in returned]
    routine = Routine(
        layout,
        [bound[call] for call in calls if call.is_once],
        [bound[call] for call in calls if not call.is_once],
        # Memory maps as plain arrays, so that what is computed from them is plain too.
        [None, *(np.asarray(op.value.array) for op in constants)],
        [value_type(argument.type) for argument in block.args[:own]],
        [_better(*pair) for pair in zip(results, declared or results, strict=True)],
    )
    return routine, slots


def value_type(attribute: Attribute) -> ValueType:
    """What a type says, in NumPy's terms."""
    element = element_type(attribute)
    known = None if element is None else element_of(element)
    dims = dims_of(attribute)
    shape = None if dims is None else tuple(_size(dim) for dim in dims)
    return ValueType(None if known is None else known.numpy, shape)


def _size(dim: int | str | None) -> int | None:
    return dim if isinstance(dim, int) and dim >= 0 else None


def _better(own: ValueType, declared: ValueType) -> ValueType:
    return ValueType(
        own.dtype or declared.dtype, declared.shape if own.shape is None else own.shape
    )


def _returned(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    assert isinstance(last, ReturnOp), "emit_plan closes every block"
    return tuple(last.operands)


def _bound(call: CallOp, slots: Slots, constants_end: int) -> BoundCall:
    kernel = _kernel(call)
    if widened := call.positions("widens"):
        kernel = widening_inputs(kernel, widened)
    results = tuple(slots[result] for result in call.results)
    inputs = tuple(slots[value] for value in call.arguments)
    unused = [slots[result] for result in call.results if result.first_use is None]
    return BoundCall(
        where=_where(call),
        kernel=kernel,
        keywords=_keywords(call, kernel),
        inputs=inputs,
        captures=tuple(slots[value] for value in call.captures),
        results=results,
        frees=(*(slots[call.operands[p]] for p in call.positions("frees")), *unused),
        bodies=_bodies(call),
        facts=frozenset(call.texts("facts")),
        shape_inputs=tuple(slots[call.operands[p]] for p in call.positions("shape_operands")),
        constant_inputs=tuple(slot < constants_end for slot in inputs),
        chain=call.chain,
    )


def _kernel(call: CallOp) -> Kernel:
    domain, op_type, since = call.operator
    grades: dict[str, Grade] = {"reference": "reference", "fast": "fast", "exact": "exact"}
    grade = grades.get(call.kernel.partition(" ")[0])
    kernel = None if grade is None else find_kernel(domain, op_type, since, [grade])
    if kernel is None:
        raise UnsupportedOperator(
            f"{_where(call)} wants the kernel '{call.kernel}', which is not registered"
        )
    return kernel


def _where(call: CallOp) -> str:
    domain, op_type, _ = call.operator
    named = f"onnx.{op_type}" if not domain else f"{domain}.{op_type}"
    if node := node_name(call):
        return f"{named} (node '{node}')"
    output = next((name for name in result_names(call) if name), None)
    return f"{named} (output '{output}')" if output else named


def _keywords(call: CallOp, kernel: Kernel) -> Mapping[str, Any]:
    """Attributes with the defaults of the node's version, and what else the kernel asks for."""
    keywords: dict[str, Any] = {name: plain_value(value) for name, value in call.given.items()}
    schema = signature(*call.operator)
    if schema is not None:
        for name, attribute in schema.attributes.items():
            if attribute.default is not None:
                keywords.setdefault(name, attribute.default)
    present = [i for i, result in enumerate(call.results, 1) if result.type != ABSENT]
    if "output_count" in kernel.reserved:
        keywords["output_count"] = max(present, default=0)
    if "output_dtypes" in kernel.reserved:
        keywords["output_dtypes"] = _dtypes(call)
    return keywords


def _dtypes(call: CallOp) -> tuple[np.dtype[Any] | None, ...]:
    return tuple(value_type(result.type).dtype for result in call.results)


def _bodies(call: CallOp) -> dict[str, BodyProgram]:
    bodies: dict[str, BodyProgram] = {}
    for name, block in call.bodies.items():
        routine, _ = bind_block(block, call.capture_count, _declared(call, block))
        bodies[name] = BodyProgram(routine)
    return bodies


def _declared(call: CallOp, block: Block) -> list[ValueType]:
    """What the types of a node's results say of the last results of its body.

    A scan output of Loop or Scan has the turns as one more axis, taken here to be the first;
    a result that the body returns as it is has more axes than this says, and is not asked for.
    """
    returned = len(_returned(block))
    types = [value_type(result.type) for result in call.results][-returned:]
    per_turn = [ValueType(t.dtype, None if t.shape is None else t.shape[1:]) for t in types]
    return [*[ValueType()] * (returned - len(per_turn)), *per_turn]
