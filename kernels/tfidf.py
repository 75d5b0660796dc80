"""TfIdfVectorizer 9: how often n-grams of a pool occur in rows of tokens.

    tokens -> numbers of the pool's vocabulary -> numbers of known prefixes, token by token
        -> n-grams of the pool, counted -> columns of the output

Numbers of prefixes grow one token at a time: a pair (prefix, token) that begins no n-gram of the
pool ends the search at that place, so work stops early, and no n-gram is ever built as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from foldline.kernels.registry import Array, Operand, maker

Numbers = npt.NDArray[np.int64]


class _Pool:
    """The n-grams of the wanted lengths, as a table of prefixes.

    Prefix 0 is the empty one; each (prefix, token number) of the table has the prefix that is one
    token longer, and `gram[prefix]` is the position in the pool of the n-gram it is, -1 for none.
    """

    def __init__(self, grams: Iterable[tuple[Any, ...]], lengths: range) -> None:
        self.vocabulary: dict[Any, int] = {}
        longer: dict[tuple[int, int], int] = {}
        gram_of = [-1]
        for position, gram in enumerate(grams):
            if len(gram) not in lengths:
                continue
            prefix = 0
            for token in gram:
                number = self.vocabulary.setdefault(token, len(self.vocabulary))
                prefix = longer.setdefault((prefix, number), len(gram_of))
                if prefix == len(gram_of):
                    gram_of.append(-1)
            gram_of[prefix] = position
        self.size = len(longer)
        self.gram = np.array(gram_of, np.int64)
        self._width = len(self.vocabulary)
        pairs = sorted((a * self._width + b, prefix) for (a, b), prefix in longer.items())
        self._keys, self._longer = np.array(pairs, np.int64).reshape(-1, 2).T

    def numbers(self, tokens: Array) -> Numbers:
        """Numbers of the vocabulary, -1 for what is not in it."""
        find = self.vocabulary.get
        return np.array([find(token, -1) for token in tokens.reshape(-1).tolist()], np.int64)

    def extended(self, prefixes: Numbers, numbers: Numbers) -> Numbers:
        """The prefixes one token longer, -1 where the pool has none."""
        keys = prefixes * self._width + numbers
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where((numbers >= 0) & (self._keys[place] == keys), self._longer[place], -1)


@maker("TfIdfVectorizer", grade="reference", exact=True)
def tfidf_vectorizer(
    x: Operand,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Callable[..., Array]:
    """TfIdfVectorizer 9: X `(C)` or `(N, C)` of tokens gives float32 `(columns)` or `(N, columns)`.

    There are `max(ngram_indexes) + 1` columns. N-grams of `min_gram_length` to `max_gram_length`
    tokens count, the tokens being 1 to `max_skip_count + 1` places apart. In mode TF an n-gram adds
    its count to its column, in IDF its weight if it occurs, in TFIDF its weight times its count.
    Weights are in the order of the pool and default to 1.

    Raises ValueError for an unknown mode or an input of more than two axes.
    """
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ValueError(f"TfIdfVectorizer: mode is {mode!r}, expected 'TF', 'IDF' or 'TFIDF'")
    if len(x.shape) > 2:
        raise ValueError(f"TfIdfVectorizer: the shape is {x.shape}, expected (C,) or (N, C)")
    lengths = range(min_gram_length, max_gram_length + 1)
    pool = _Pool(_grams(pool_int64s or pool_strings or (), ngram_counts), lengths)
    scale = None if mode == "TF" or not weights else np.array(weights, np.float32)
    columns = np.array(ngram_indexes, np.int64)

    def run(tokens: Array) -> Array:
        rows = np.atleast_2d(tokens)
        counts = np.zeros((len(rows), len(columns)), np.int64)
        if pool.size and rows.size:
            _count(counts, pool, pool.numbers(rows).reshape(rows.shape), lengths, max_skip_count)
        values = (np.minimum(counts, 1) if mode == "IDF" else counts).astype(np.float32)
        if scale is not None:
            values *= scale
        result = np.zeros((len(rows), columns.max() + 1), np.float32)
        np.add.at(result.T, columns, values.T)
        return result if tokens.ndim == 2 else result[0]

    return run


def _grams(pool: Sequence[Any], starts: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The pool cut into n-grams: those of length n begin at `starts[n - 1]`."""
    ends = [*starts[1:], len(pool)]
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        usable = end - (end - start) % length
        yield from (tuple(pool[at : at + length]) for at in range(start, usable, length))


def _count(
    counts: Numbers, pool: _Pool, numbers: Numbers, lengths: range, max_skip_count: int
) -> None:
    for distance in range(1, max_skip_count + 2):
        row, place = np.indices(numbers.shape).reshape(2, -1)
        prefix = np.zeros(numbers.size, np.int64)
        for length in range(1, lengths.stop):
            prefix = pool.extended(prefix, numbers[row, place])
            known = prefix >= 0
            row, place, prefix = row[known], place[known], prefix[known]
            gram = pool.gram[prefix]
            # Single tokens are the same at every distance, and counted once.
            if length in lengths and (length > 1 or distance == 1):
                np.add.at(counts, (row[gram >= 0], gram[gram >= 0]), 1)
            place = place + distance
            fits = place < numbers.shape[1]
            row, place, prefix = row[fits], place[fits], prefix[fits]
