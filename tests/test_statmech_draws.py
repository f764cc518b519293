"""Random numbers have their distributions, and a generator without one of its random signs does not."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.extend.random import threefry_2x32
from scipy.stats import kstest

from statmech.numerics import random_numbers

LEVEL = 1e-5  # significance level of each test
box_muller = jax.jit(random_numbers._box_muller)


@pytest.fixture(scope="module")
def pairs():
    """Pairs of normals, shape (2, 200,000), the two halves of one draw; and uniforms."""
    draw = jax.jit(lambda key: random_numbers.draw_normals_and_uniforms(key, (2, 200_000), (100_000,)))
    x, u = draw(jax.random.key(0))
    return np.asarray(x, float), np.asarray(u, float)


def test_normals_are_normal_and_uniforms_uniform(pairs):
    x, u = pairs
    assert kstest(x.ravel(), "norm").pvalue > LEVEL
    assert kstest(u, "uniform").pvalue > LEVEL
    assert 0 < u.min() < u.max() < 1


def test_the_two_normals_of_a_pair_are_independent(pairs):
    """Correlations of values, of squares and of signs, and the distribution of the pair's angle."""
    x, _ = pairs
    for values in (x, x**2, np.sign(x)):
        assert abs(np.corrcoef(values)[0, 1]) < 4.5 / np.sqrt(x.shape[1])
    assert kstest(np.arctan2(*x) / (2 * np.pi) + 0.5, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("missing", [1, 2])
def test_without_one_of_its_random_signs_the_pair_has_a_different_distribution(missing):
    """A deliberate error: the cosine's sign always negative, or sine and cosine never swapped."""
    words = random_numbers.draw_uint32(jax.random.key(1), 100_000)
    radial, angular = words[:50_000], words[50_000:]
    right, _ = np.split(np.asarray(box_muller(radial, angular), float), 2)
    wrong, _ = np.split(np.asarray(box_muller(radial, angular & np.uint32(~missing & 0xFFFFFFFF)), float), 2)
    assert kstest(right, "norm").pvalue > LEVEL > kstest(wrong, "norm").pvalue


@pytest.mark.slow
def test_tails_reach_as_far_as_they_should():
    """Four standard deviations, where a truncated angle or radius would be visible: counts within Poisson errors."""
    x = np.asarray(random_numbers.draw_normals(jax.random.key(2), (4_000_000,)))
    for beyond in (3.0, 4.0):
        expected = 4e6 * 2 * 0.5 * float(jax.scipy.special.erfc(beyond / np.sqrt(2)))
        assert abs(np.sum(abs(x) > beyond) - expected) < 4.5 * np.sqrt(expected)


def test_signs_are_fair_and_independent():
    s = np.asarray(random_numbers.draw_signs(jax.random.key(3), (100, 1001)), float)
    assert set(np.unique(s)) == {-1.0, 1.0}
    assert abs(s.mean()) < 4.5 / np.sqrt(s.size)
    assert abs(np.mean(s[:, 1:] * s[:, :-1])) < 4.5 / np.sqrt(s.size)


@pytest.mark.parametrize(
    ("keys", "lanes"),
    [*(pytest.param(1, lanes, marks=pytest.mark.quick) for lanes in (None, (8, 2, 16))), (5, (0, 2, 16))],
)
def test_single_numbers_are_those_of_the_whole_draw(keys, lanes):
    """Of one key, of a part of its lanes, and of several keys; a neighbour's row has other numbers."""
    words = np.arange(2, 2 + 2 * keys, dtype=np.uint32).reshape(keys, 2).squeeze()
    lanes = lanes and random_numbers.BatchSlice(np.uint32(lanes[0]), *lanes[1:])
    width, rows, number = keys * (lanes.width if lanes else 6), 8, np.uint32(3)

    @jax.jit
    def differences(shift):
        key = random_numbers.wrap_key_data(words)
        whole = random_numbers.draw_normals_and_uniforms(
            random_numbers.fold_in(key, number), (4, 2, width), (4, 2, width), lanes
        )
        row = jax.numpy.arange(width) % rows
        numbers = jax.numpy.full(width, number)
        found = random_numbers.draw_normal_and_uniform_at(key, numbers, row, rows, lanes)
        expected = (part.reshape(rows, width)[(row + shift) % rows, np.arange(width)] for part in whole)
        return [abs(one - other) for one, other in zip(found, expected, strict=True)]

    assert np.max(differences(0)) < 1e-6
    assert np.min(np.max(differences(1), axis=0)) > 1e-6


def test_no_random_word_repeats():
    """Both words of every call of the generator are used, each once."""
    words = np.asarray(random_numbers.draw_uint32(jax.random.key(4), 10_001))
    assert len(np.unique(words)) > 10_001 - 5  # a few coincidences among 2^32


@pytest.mark.parametrize("count", [10, 11])
def test_random_words_are_those_of_jax(count):
    """An even number of them, and an odd one, of which JAX drops the last word."""
    words = random_numbers.make_key_data(2**40 + 5)
    expected = threefry_2x32(words, np.arange(count, dtype=np.uint32))
    np.testing.assert_array_equal(random_numbers.draw_uint32(random_numbers.wrap_key_data(words), count), expected)


@pytest.mark.slow
def test_keys_made_on_the_host_are_those_of_jax():
    """Across the range of the experiment's key, and of the words and numbers that are folded into it."""
    numbers = [0, 1, 63, 2**31 - 1, 2**31, 2**32 - 1]
    with jax.enable_x64(True):
        for number in numbers:
            key, words = jax.random.key(number, impl="threefry2x32"), random_numbers.make_key_data(number)
            np.testing.assert_array_equal(words, jax.random.key_data(key))
            for word in numbers:
                folded = jax.random.key_data(jax.random.fold_in(key, np.uint32(word)))
                np.testing.assert_array_equal(random_numbers.fold_in_key_data(words, word), folded)
                for given in (words, np.array([words, words[::-1]])):  # one key, and several
                    traced = jax.random.key_data(
                        random_numbers.fold_in(random_numbers.wrap_key_data(given), np.uint32(word))
                    )
                    expected = [random_numbers.fold_in_key_data(one, word) for one in np.atleast_2d(given)]
                    np.testing.assert_array_equal(np.atleast_2d(traced), expected)
            parts = [random_numbers.fold_in_key_data(words, part) for part in range(5)]
            np.testing.assert_array_equal(parts, jax.random.key_data(jax.random.split(key, 5)))
            assert random_numbers.wrap_key_data(words) == key
