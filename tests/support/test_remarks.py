"""Remarks are held once, in order, and logged where that is on."""

from __future__ import annotations

import logging

import pytest

from foldline.support.remarks import Remark, Remarks

ONE = Remark("applied", "stage1", "constant-folding", "add_1", "onnx.Add", "computed int64[2]")
TWO = Remark("note", "", "infer-shapes", "", "", "declared x")


def test_a_remark_reads_as_a_sentence() -> None:
    assert str(ONE) == "stage1/constant-folding: applied onnx.Add 'add_1': computed int64[2]"
    assert str(TWO) == "infer-shapes: note: declared x"


def test_remarks_are_held_once_and_in_order() -> None:
    remarks = Remarks()
    for remark in (TWO, ONE, TWO):
        remarks.record(remark)
    assert list(remarks) == [TWO, ONE]
    assert len(remarks) == 2


def test_remarks_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    Remarks().record(ONE)
    assert not caplog.messages
    caplog.set_level(logging.DEBUG, "foldline.remarks")
    Remarks().record(ONE)
    assert caplog.messages == [str(ONE)]
