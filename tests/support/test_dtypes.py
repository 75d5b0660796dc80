from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from foldline.support.dtypes import BY_CODE, BY_NAME, BY_NUMPY, ELEMENT_TYPES, ElementType

EACH = pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.name)


def test_every_element_type_of_onnx_has_a_row() -> None:
    codes = {code for name, code in TensorProto.DataType.items() if name != "UNDEFINED"}
    assert set(BY_CODE) == codes


@EACH
def test_a_row_agrees_with_onnx(row: ElementType) -> None:
    assert TensorProto.DataType.Name(row.code).lower() == row.name
    assert np.dtype(helper.tensor_dtype_to_np_dtype(row.code)) == row.numpy
    assert helper.tensor_dtype_to_field(row.code) == row.typed_field


@EACH
def test_bits_are_those_of_raw_data(row: ElementType) -> None:
    if row.name == "string":
        assert row.bits == 0
        return
    values = np.zeros(16, row.numpy)
    proto = helper.make_tensor("t", row.code, [16], values, raw=False)
    in_memory = row.numpy.itemsize * 8
    assert row.bits <= in_memory
    if row.bits == in_memory:
        assert len(values.tobytes()) * 8 == 16 * row.bits
    else:
        assert row.bits in (2, 4, 6)
        assert proto.int32_data


def test_tables_index_the_same_rows() -> None:
    assert len(BY_NAME) == len(BY_NUMPY) == len(BY_CODE) == len(ELEMENT_TYPES)
    assert BY_NAME["float"] is BY_CODE[1] is BY_NUMPY[np.dtype(np.float32)]
    assert BY_NUMPY[np.dtype(object)].name == "string"
