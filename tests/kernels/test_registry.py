"""The registry refuses overlaps, and every kernel takes the attributes its operators have."""

import inspect

import numpy as np
import pytest

import foldline.kernels
import foldline.kernels.activation
import foldline.kernels.arithmetic
import foldline.kernels.cast
import foldline.kernels.comparison
import foldline.kernels.constant
import foldline.kernels.unary_math  # noqa: F401
from foldline.dialects import OPERATORS  # noqa: F401 (declares what is not of ONNX)
from foldline.dialects.onnx.schema import Signature, operators
from foldline.kernels import registry
from foldline.kernels.registry import (
    RESERVED,
    Kernel,
    Operand,
    Step,
    all_kernels,
    compute,
    find_kernel,
    kernel,
    maker,
)

DOMAINS = {domain for domain, _ in operators()}
"""Of ONNX, and of what is declared beside it; tests register in others."""


@pytest.fixture
def table(monkeypatch):
    """An empty table for the test's own registrations."""
    monkeypatch.setattr(registry, "_TABLE", {})


def served_schemas(entry: Kernel) -> list[Signature]:
    versions = operators().get((entry.domain, entry.op_type), ())
    return [schema for schema in versions if entry.since <= schema.since < entry.until]


@pytest.mark.usefixtures("table")
class TestRegistration:
    def test_overlap_names_both_kernels(self):
        @kernel("Twice", until=7)
        def first(x):
            return x

        with pytest.raises(ValueError, match=r"Twice 1\.\.6 .*first; .*second"):

            @kernel("Twice", since=6)
            def second(x):
                return x

    def test_overlap_is_refused_whatever_the_order(self):
        @kernel("Twice", since=6)
        def first(x):
            return x

        with pytest.raises(ValueError, match="Twice"):
            kernel("Twice", until=7)(lambda x: x)

    def test_adjacent_versions_other_grades_and_domains_do_not_overlap(self):
        def function(x):
            return x

        kernel("Twice", until=7)(function)
        kernel("Twice", since=7)(function)
        kernel("Twice", grade="fast")(function)
        kernel("Twice", domain="other")(function)
        assert len(all_kernels()) == 4

    def test_fast_is_preferred_to_reference(self):
        @kernel("Twice")
        def plain(x):
            return x

        @maker("Twice", since=7)
        def fast(x):
            return lambda x: x

        assert find_kernel("", "Twice", 7).function is fast
        assert find_kernel("", "Twice", 6).function is plain
        assert find_kernel("", "Twice", 7, ("reference",)).function is plain
        assert find_kernel("", "Twice", 7, ("exact",)) is None
        assert find_kernel("", "Thrice", 7) is None

    def test_keywords_are_split_into_attributes_and_reserved(self):
        @kernel("Twice")
        def twice(x, *, axis=0, out=None):
            return x

        entry = find_kernel("", "Twice", 1)
        assert entry.attributes == {"axis"}
        assert entry.reserved == {"out"}

    def test_compute_runs_a_maker_with_out_and_scratch(self):
        @maker("Twice")
        def twice(x: Operand, *, axis=0, out=None):
            assert x.shape == (3,)
            assert x.value is None

            def run(x, *, out=None, scratch):
                assert scratch.nbytes == 100
                assert scratch.ctypes.data % 64 == 0
                return np.multiply(x, 2, out=out)

            return Step(run, 100)

        out = np.empty(3)
        result = compute(find_kernel("", "Twice", 1), [np.arange(3.0)], axis=1, out=out)
        assert result is out
        assert out.tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    "entry",
    [entry for entry in all_kernels() if entry.domain in DOMAINS],
    ids=lambda entry: f"{entry.op_type}-{entry.since}-{entry.grade}",
)
class TestSignatures:
    def test_serves_some_schema(self, entry: Kernel):
        assert served_schemas(entry), f"{entry.where} serves no version that exists"

    def test_keywords_are_the_attributes(self, entry: Kernel):
        schemas = served_schemas(entry)
        for schema in schemas:
            missing = set(schema.attributes) - entry.attributes
            assert not missing, f"{entry.where} lacks {missing} of version {schema.since}"
        known = {name for schema in schemas for name in schema.attributes}
        assert entry.attributes <= known, f"{entry.where} has {entry.attributes - known}"

    def test_optional_attributes_have_a_default(self, entry: Kernel):
        parameters = inspect.signature(entry.function).parameters
        for schema in served_schemas(entry):
            for name, attribute in schema.attributes.items():
                if attribute.is_required or attribute.default is not None:
                    continue
                assert parameters[name].default is not inspect.Parameter.empty, (entry.where, name)

    def test_positional_parameters_are_the_inputs(self, entry: Kernel):
        kinds = inspect.Parameter
        parameters = inspect.signature(entry.function).parameters.values()
        if any(p.kind is kinds.VAR_POSITIONAL for p in parameters):
            return
        positional = [
            p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ]
        required = sum(p.default is kinds.empty for p in positional)
        for schema in served_schemas(entry):
            assert schema.max_inputs <= len(positional), (entry.where, schema.since)
            assert required <= schema.min_inputs, (entry.where, schema.since)

    def test_declarations_are_about_inputs_it_has(self, entry: Kernel):
        for schema in served_schemas(entry):
            assert all(0 <= i < schema.max_inputs for i in entry.inplace), entry.where
        if entry.inplace:
            assert "out" in entry.reserved, f"{entry.where}: inplace without out"
        assert entry.reserved <= set(RESERVED)
