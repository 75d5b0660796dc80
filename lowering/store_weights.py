"""How a program holds weights: packed once for all their readers, or compact.

    Linear(A, B) with transB   ->   Linear(A, B^T in C order); B goes when it has no reader left
    Conv(X, W)                 ->   Conv(X, W in a half type), which widens W at every run

A matrix that is in the order of its product already is packed as it is. What is compact is never
packed: `fused.Linear` takes no compact weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, i64

from foldline.dialects.fold.compact import STORAGE, WEIGHTS, rounded_weights
from foldline.dialects.onnx.tensor import TensorAttr
from foldline.dialects.plan import CallOp, ConstantOp, ProgramOp
from foldline.kernels.packing import BLAS, TRANSPOSABLE, pack_b


def store_weights(program: ProgramOp, storage: str = "Float32") -> None:
    """Store the weights of a program, in place; `storage` is what `weightStorage` says."""
    constants = [op for op in program.walk() if isinstance(op, ConstantOp)]
    dtype = STORAGE.get(storage)
    if dtype is not None:
        for constant in constants:
            _compact(constant, dtype)
    packed: dict[int, TensorAttr] = {}
    for constant in constants:
        _pack(constant, packed)


def _compact(constant: ConstantOp, dtype: np.dtype[np.generic]) -> None:
    """Round a constant that is nothing but weights."""
    readers = list(_readers(constant))
    if not readers or len(readers) < _uses(constant):
        return
    if any(WEIGHTS.get(call.operator[:2]) != place for call, place in readers):
        return
    rounded = rounded_weights(constant.value, dtype)
    if rounded is None:
        return
    for call, place in readers:
        call.properties["widens"] = DenseArrayBase.from_list(i64, [place])
    _replace(constant, rounded, readers)


def _pack(constant: ConstantOp, packed: dict[int, TensorAttr]) -> None:
    """Transpose a constant for the calls that would do it at every run."""
    readers = [(call, place) for call, place in _readers(constant) if _transposes(call, place)]
    array = constant.value.array
    if not readers or array.ndim != 2 or constant.value.data.is_splat:
        return
    key = id(constant.value.data)
    if key not in packed:
        packed[key] = TensorAttr.of(pack_b(BLAS, array, transposed=True).reshape(array.T.shape))
        if constant.value.data.spelling != "external":
            # The model stays as long as someone holds it, and needs no memory of its own for that.
            constant.value.data.move_to(packed[key].array.T)
    for call, _ in readers:
        given = {**call.given, TRANSPOSABLE[call.operator[:2]][1]: IntegerAttr(0, i64)}
        call.properties["given"] = DictionaryAttr(given)
    _replace(constant, packed[key], readers)


def _transposes(call: CallOp, place: int) -> bool:
    matrix, attribute = TRANSPOSABLE.get(call.operator[:2], (-1, ""))
    flag = call.given.get(attribute)
    is_set = isinstance(flag, IntegerAttr) and bool(flag.value.data)
    return matrix == place and is_set and not call.positions("widens")


def _readers(constant: ConstantOp) -> Iterator[tuple[CallOp, int]]:
    """The calls that read a constant, and at which place."""
    for use in constant.output.uses:
        if isinstance(use.operation, CallOp):
            yield use.operation, use.index


def _uses(constant: ConstantOp) -> int:
    return sum(1 for _ in constant.output.uses)


def _replace(constant: ConstantOp, value: TensorAttr, readers: list[tuple[CallOp, int]]) -> None:
    """Let calls read another constant; the old one goes with its last reader."""
    new = ConstantOp.create(properties={"value": value}, result_types=[value.type])
    block = constant.parent
    assert block is not None
    block.insert_op_before(new, constant)
    for call, place in readers:
        call.operands[place] = new.output
    if constant.output.first_use is None:
        constant.detach()
        constant.erase()
