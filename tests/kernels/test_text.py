import numpy as np
import pytest

from foldline.kernels.text import (
    regex_full_match,
    string_concat,
    string_normalizer,
    string_split,
)
from tests.kernels.one_node import assert_as_onnxruntime


def strings(*values):
    return np.array(values, object)


def test_regex_matches_the_whole_string():
    x = strings("www.a.com", "www.a.org", "xwww.a.com").reshape(3, 1)
    result = regex_full_match(x, pattern=r"www\.[\w.-]+\.com")
    assert result.dtype == np.bool_
    assert result.tolist() == [[True], [False], [False]]
    assert regex_full_match(np.array("", object), pattern="").tolist() is True
    assert regex_full_match(x[:0], pattern="a").shape == (0, 1)


def test_concat_broadcasts():
    x = strings("a", "é").reshape(2, 1)
    result = string_concat(x, strings("1", "", "\0"))
    assert result.dtype == object
    assert result.tolist() == [["a1", "a", "a\0"], ["é1", "é", "é\0"]]
    scalar = string_concat(np.array("a", object), np.array("b", object))
    assert isinstance(scalar, np.ndarray)
    assert scalar.item() == "ab"
    assert string_concat(x[:0], strings("1", "2")).shape == (0, 2)


WORDS = strings("Monday", "tuesday", "MONDAY", "", "mon day")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["Monday", "tuesday", "MONDAY", "", "mon day"]),
        ({"stopwords": ("monday",)}, ["tuesday", "", "mon day"]),
        ({"stopwords": ("MONDAY",), "is_case_sensitive": 1}, ["Monday", "tuesday", "", "mon day"]),
        (
            {"stopwords": ("mon",), "case_change_action": "UPPER"},
            ["MONDAY", "TUESDAY", "MONDAY", "", "MON DAY"],
        ),
        (
            {"stopwords": ("",), "case_change_action": "LOWER"},
            ["monday", "tuesday", "monday", "mon day"],
        ),
    ],
)
def test_normalizer(options, expected):
    assert string_normalizer(WORDS, locale="tr_TR", **options).tolist() == expected
    assert string_normalizer(WORDS, **options).tolist() == expected
    assert string_normalizer(WORDS.reshape(1, -1), **options).tolist() == [expected]


def test_normalizer_of_nothing_is_one_empty_string():
    for x in (strings("a"), strings("a").reshape(1, 1), np.empty(0, object)):
        result = string_normalizer(x, stopwords=("A",))
        assert result.dtype == object
        assert result.ravel().tolist() == [""]
        assert result.ndim == x.ndim


def test_normalizer_refuses_other_shapes_and_actions():
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        string_normalizer(strings("a", "b").reshape(2, 1))
    with pytest.raises(ValueError, match="'TITLE'"):
        string_normalizer(WORDS, case_change_action="TITLE")


def test_normalizer_as_onnxruntime():
    # Only without any change of case does the runtime need no locale of the system.
    options = {"stopwords": ["Monday", ""], "is_case_sensitive": 1}
    assert_as_onnxruntime("StringNormalizer", 10, [WORDS], options)


@pytest.mark.parametrize(
    ("options", "table", "counts"),
    [
        ({"delimiter": "."}, [["a", "b", ""], ["", "", "c"], ["", "", ""]], [2, 3, 1]),
        ({"delimiter": ".", "maxsplit": 1}, [["a", "b"], ["", ".c"], ["", ""]], [2, 2, 1]),
        ({"delimiter": ".", "maxsplit": 0}, [["a.b"], ["..c"], [""]], [1, 1, 1]),
        ({"delimiter": "b"}, [["a.", ""], ["..c", ""], ["", ""]], [2, 1, 1]),
    ],
)
def test_split(options, table, counts):
    parts, number = string_split(strings("a.b", "..c", ""), **options)
    assert parts.tolist() == table
    assert number.dtype == np.int64
    assert number.tolist() == counts


@pytest.mark.parametrize("delimiter", [None, ""])
def test_split_at_white_space(delimiter):
    parts, number = string_split(strings(" a \t b  c ", " ", "d"), delimiter=delimiter)
    assert parts.tolist() == [["a", "b", "c"], ["", "", ""], ["d", "", ""]]
    assert number.tolist() == [3, 0, 1]
    limited, _ = string_split(strings(" a  b  c"), delimiter=delimiter, maxsplit=1)
    assert limited.tolist() == [["a", "b  c"]]


def test_split_of_scalars_and_of_nothing():
    parts, number = string_split(np.array("a b", object))
    assert parts.tolist() == ["a", "b"]
    assert number.shape == ()
    parts, number = string_split(np.empty((2, 0), object), delimiter=",")
    assert parts.shape == (2, 0, 0)
    assert number.shape == (2, 0)
