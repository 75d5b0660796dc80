"""From a module of the onnx dialect to a program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from foldline.kernels.registry import GRADES, Grade
from foldline.lowering.emit_plan import Constants, emit_plan
from foldline.lowering.expand_functions import ReadFunction
from foldline.lowering.program import Program
from foldline.lowering.select_kernels import select_kernels
from foldline.lowering.store_weights import store_weights


def lower(
    module: ModuleOp,
    *,
    constants: Constants = "once",
    grades: Sequence[Grade] = GRADES["fast"],
    read_function: ReadFunction | None = None,
    weight_storage: str = "Float32",
) -> Program:
    """The program of a module, which is only read.

    `constants`: whether subgraphs of constants are computed once in the life of the program or
    at every run. `grades`: the grades of kernels, preferred ones first.
    `read_function`: what reads the function that a schema defines an operator by; without it,
    such an operator needs a kernel.
    `weight_storage`: how weights are held, as the option `weightStorage` has it.
    Raises UnsupportedOperator naming all operators without kernel, InvalidModel.
    """
    plan = emit_plan(module, select_kernels(module, grades, read_function), constants)
    store_weights(plan, weight_storage)
    return Program(plan)
