import numpy as np
import pytest

import foldline.kernels.tfidf  # noqa: F401
from tests.kernels.one_node import assert_as_onnxruntime, own_results

POOL = {
    "ngram_counts": [0, 3, 11],
    "ngram_indexes": [8, 1, 2, 3, 4, 5, 6, 7, 0],
    "pool_int64s": [1, 2, 3, 1, 2, 2, 1, 3, 3, 1, 1, 1, 2, 3, 3, 2, 1],
    "weights": [0.5, 1.5, 2.0, 0.25, 4.0, 1.0, 3.0, 0.75, 5.0],
}


def counted(x, **options):
    defaults = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0}
    return own_results("TfIdfVectorizer", 9, [np.array(x)], defaults | options)[0]


BIGRAMS = {"ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_int64s": [5, 6, 5, 6, 6, 6]}


def test_counts_of_single_tokens_and_pairs():
    options = BIGRAMS | {"ngram_indexes": [0, 1, 2, 3]}
    result = counted([5, 6, 6, 6, 9, 5], **options)
    assert result.dtype == np.float32
    assert result.tolist() == [2, 3, 1, 2]
    assert counted([[6], [7]], **options).tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]


def test_skips_count_pairs_at_every_distance_and_tokens_once():
    options = BIGRAMS | {"ngram_indexes": [0, 1, 2, 3], "max_skip_count": 2}
    assert counted([5, 6, 6, 6], **options).tolist() == [1, 3, 3, 3]


def test_weights_are_in_the_order_of_the_pool():
    options = {"max_gram_length": 1, "ngram_counts": [0], "ngram_indexes": [2, 0, 1]}
    options |= {"pool_int64s": [1, 2, 3], "weights": [10.0, 20.0, 30.0]}
    assert counted([1, 1, 2, 3], mode="TFIDF", **options).tolist() == [20, 30, 20]
    assert counted([1, 1, 3], mode="IDF", **options).tolist() == [0, 30, 10]
    assert counted([1, 1, 3], mode="TF", **options).tolist() == [0, 1, 2]


def test_n_grams_may_share_a_column():
    options = {"max_gram_length": 1, "ngram_counts": [0], "ngram_indexes": [1, 1]}
    assert counted([1, 1, 2], pool_int64s=[1, 2], **options).tolist() == [0, 3]


def test_strings():
    options = {"ngram_counts": [0, 1], "ngram_indexes": [0, 1], "pool_strings": ["a", "a", "b"]}
    x = np.array([["a", "b", "a"], ["b", "a", "b"]], object)
    assert counted(x, **options).tolist() == [[2, 1], [1, 1]]


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_nothing_to_count(shape):
    options = BIGRAMS | {"ngram_indexes": [0, 1, 2, 3]}
    result = counted(np.zeros(shape, np.int64), **options)
    assert result.tolist() == np.zeros((*shape[:-1], 4)).tolist()


def test_lengths_without_n_grams():
    options = BIGRAMS | {"ngram_indexes": [0, 1, 2, 3], "min_gram_length": 3}
    assert counted([5, 6], max_gram_length=4, **options).tolist() == [0, 0, 0, 0]


def test_what_is_refused():
    with pytest.raises(ValueError, match="mode is 'BM25'"):
        counted([1], mode="BM25", **BIGRAMS)
    with pytest.raises(ValueError, match=r"\(1, 1, 1\)"):
        counted([[[1]]], **BIGRAMS)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (2, 3), (1, 3)])
@pytest.mark.parametrize("skips", [0, 1, 3])
def test_as_onnxruntime(mode, lengths, skips):
    x = np.random.default_rng(7).integers(1, 5, (3, 12)).astype(np.int32)
    options = {"min_gram_length": lengths[0], "max_gram_length": lengths[1], "mode": mode}
    options |= {"max_skip_count": skips, **POOL}
    assert_as_onnxruntime("TfIdfVectorizer", 9, [x], options)
