from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.support.text import decoded, encoded, quoted, unquoted


@given(st.binary().map(decoded))
def test_quoted_text_is_one_plain_literal_and_comes_back(text: str) -> None:
    literal = quoted(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert literal[0] == literal[-1] == '"'
    assert not set('"\\') & set(literal[1:-1])
    assert unquoted(literal[1:-1]) == text


@pytest.mark.parametrize("start", [*range(0, 0xD800, 0x1800), *range(0xE000, 0x11000, 0x1000)])
def test_every_character_comes_back(start: int) -> None:
    text = "".join(map(chr, range(start, start + 0x1000)))
    assert unquoted(quoted(text)[1:-1]) == text


def test_plain_text_stays_readable() -> None:
    assert quoted("conv_1/weight:0") == '"conv_1/weight:0"'
    assert quoted("größe") == '"gr%C3%B6%C3%9Fe"'
    assert quoted("50%") == '"50%25"'


@given(st.binary())
def test_any_bytes_survive_as_text(data: bytes) -> None:
    assert encoded(decoded(data)) == data


def test_bytes_that_are_not_utf8_are_lone_surrogates() -> None:
    assert decoded(b"a\xff") == "a\udcff"
    assert quoted("a\udcff") == '"a%FF"'
