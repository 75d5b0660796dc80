"""From a module of the onnx dialect to a program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from foldline.kernels.registry import GRADES, Grade
from foldline.lowering.emit_plan import Constants, emit_plan
from foldline.lowering.expand_functions import ReadFunction
from foldline.lowering.program import Program
from foldline.lowering.select_kernels import select_kernels


def lower(
    module: ModuleOp,
    *,
    constants: Constants = "once",
    grades: Sequence[Grade] = GRADES["fast"],
    read_function: ReadFunction | None = None,
) -> Program:
    """The program of a module, which is only read.

    `constants`: whether subgraphs of constants are computed once in the life of the program or
    at every run. `grades`: the grades of kernels, preferred ones first.
    `read_function`: what reads the function that a schema defines an operator by; without it,
    such an operator needs a kernel.
    Raises UnsupportedOperator naming all operators without kernel, InvalidModel.
    """
    return Program(emit_plan(module, select_kernels(module, grades, read_function), constants))
