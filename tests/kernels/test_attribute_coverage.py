"""Every attribute of every schema is at another value than its default in some test.

The node tests of the ONNX backend suite leave almost 300 out. Those are set by tests of kernels,
which run here once more, in a process that records what kernels are given.
"""

import subprocess
import sys
from pathlib import Path

import onnx.defs
import pytest
from onnx import helper

from tests.conformance.suite import node_cases

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_KERNEL = {("ai.onnx.preview.training", "Gradient", name) for name in ("xs", "y", "zs")}
"""Gradients belong to training."""


def attributes_of_schemas():
    schemas = onnx.defs.get_all_schemas_with_history()
    return {(s.domain or "ai.onnx", s.name, name) for s in schemas for name in s.attributes}


def attributes_of_suite():
    found = set()
    for case in node_cases():
        versions = {row.domain: row.version for row in case.model.opset_import}
        found.update(set_attributes(case.model.graph, versions))
    return found


def set_attributes(graph, versions):
    """(domain, operator, attribute) of what nodes set to other values than their schemas do."""
    for node in graph.node:
        if not onnx.defs.has(node.op_type, version := versions[node.domain], node.domain):
            continue  # a local function
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
        for attribute in node.attribute:
            value = helper.get_attribute_value(attribute)
            default = schema.attributes[attribute.name].default_value
            if not default.name or value != helper.get_attribute_value(default):
                yield node.domain or "ai.onnx", node.op_type, attribute.name
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from set_attributes(value, versions)


APART = (
    "attribute_coverage",
    "complete",
    "contrib_*",
    "conv_*",
    "elementwise",
    "function_bodies",
    "integer_products",
    "reduction_fast",
    "registry",
)
"""Test files that are left out to save time; one that is needed would be missed below."""


@pytest.mark.slow
def test_every_attribute_is_set_by_a_test(tmp_path):
    record = tmp_path / "attributes"
    options = ["-p", "tests.kernels.attribute_recorder", "--record-attributes", record]
    options += [f"--ignore-glob=*/test_{name}.py" for name in APART]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "tests/kernels"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert record.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    recorded = {tuple(line.split()) for line in record.read_text().splitlines()}
    missing = attributes_of_schemas() - attributes_of_suite() - recorded
    assert missing == WITHOUT_KERNEL
