"""RE2's meaning, where Python's own differs."""

import re

import numpy as np
import pytest

import foldline.kernels.text  # noqa: F401
from foldline.kernels.regex import compile_re2
from tests.kernels.one_node import assert_as_onnxruntime

CASES = [
    (r"\d+", ["012"], ["٣", ""]),
    (r"\w", ["_", "z", "7"], ["é", "-"]),
    (r"\s", [" ", "\t", "\f"], ["\v", "\u00a0"]),
    (r"\D\W\S", ["é--", "  é"], ["0--", "aaa"]),
    (r"[\D]", ["٣", "a"], ["3"]),
    (r"[^\W\d]", ["a", "_"], ["3", "-", "é"]),
    (r"[[:alpha:]-]+", ["a-Z"], ["1"]),
    (r"[[:^alpha:]]", ["1", "é", "["], ["a", "Z"]),
    (r"[]a]+", ["]a"], ["b"]),
    (r"[^]a]", ["b"], ["]"]),
    (r"[[&|~-]+", ["[&|~-"], ["a"]),
    (r"\Qa.b\E+", ["a.bbb"], ["axb"]),
    (r"\Q(", ["("], [""]),
    (r"\x{1F600}|\x41", ["\U0001f600", "A"], ["B"]),
    (r"[\x{61}-\x{63}]", ["b"], ["d"]),
    (r"(?P<a>x)(?<b>y)", ["xy"], ["x"]),
    (r"(?i)abc", ["aBC"], ["abd"]),
    (r"a(?i)b|c", ["aB", "C"], ["AB"]),
    (r"(a(?i)b)c", ["aBc"], ["aBC", "Abc"]),
    (r"(?i:a)b", ["Ab"], ["AB"]),
    (r"(?i)a(?-i:b)(?-i)c", ["Abc"], ["ABc", "AbC"]),
    (r"(?i)É", ["é"], ["e"]),
    (r"a.b", ["a-b"], ["a\nb"]),
    (r"(?s)a.b", ["a\nb"], ["ab"]),
    (r"a$\n?", ["a"], ["a\n"]),
    (r"(?m)a$\n^b", ["a\nb"], ["a"]),
    (r"\Aa\z", ["a"], ["a\n"]),
    (r"é\b.*", ["é" + "x"], ["éé"]),
    (r"a\B.*", ["ab"], ["a"]),
    (r"\.\*\\", [".*\\"], ["a"]),
    (r"a{2,3}?|[b]{1}", ["aa", "aaa", "b"], ["a"]),
    (r"()|(a)(b)?", ["", "a", "ab"], ["b"]),
    ("", [""], ["a"]),
]


@pytest.mark.parametrize(("pattern", "matching", "others"), CASES)
def test_meaning(pattern, matching, others):
    compiled = compile_re2(pattern)
    assert [text for text in matching if not compiled.fullmatch(text)] == []
    assert [text for text in others if compiled.fullmatch(text)] == []


@pytest.mark.parametrize(("pattern", "matching", "others"), CASES)
def test_meaning_as_onnxruntime(pattern, matching, others):
    x = np.array(matching + others, object)
    assert_as_onnxruntime("RegexFullMatch", 20, [x], {"pattern": pattern})


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?=a)",
        r"(?!a)",
        r"(?<=a)b",
        r"(?<!a)b",
        r"(a)\1",
        r"(?#c)",
        r"(?P=a)",
        r"\pL",
        r"\C",
        r"(?U)a",
        r"(?x)a",
        r"[[:letter:]]",
        r"[abc",
        r"(a",
        r"a)",
        r"*a",
        "\\",
    ],
)
def test_refused(pattern):
    with pytest.raises(ValueError, match=re.escape(repr(pattern))):
        compile_re2(pattern)
