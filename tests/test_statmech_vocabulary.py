"""One vocabulary: one key has one meaning and one symbol in all kinds of scenarios, and one quantity one name."""

from __future__ import annotations

from collections import defaultdict

import pytest

from statmech.kinds.selection_and_vocabulary import NAMES_WITH_TWO_MEANINGS, VocabularyEntry, list_vocabulary_entries


def clashes(stated):
    """A sentence for each name with several terms or labels, and for each term or label with several names."""
    found = []
    for one, other in (("name", "term"), ("name", "label"), ("term", "name"), ("label", "name")):
        groups = defaultdict(set)
        for entry in stated:
            if not entry.switch and entry.name not in NAMES_WITH_TWO_MEANINGS:
                groups[getattr(entry, one)].add(getattr(entry, other))
        found += [f"the {one} {it!r} has {len(of)} {other}s: {sorted(of)}" for it, of in groups.items() if len(of) > 1]
    return found


def test_every_name_has_one_term_and_one_symbol_and_each_of_these_one_name():
    assert not clashes(list_vocabulary_entries())


@pytest.mark.parametrize(
    ("planted", "clash"),
    [
        (
            VocabularyEntry("flip", "probability that a label is flipped", r"$\lambda$", "1", "mine"),
            "name 'flip' has 2 labels",
        ),
        (VocabularyEntry("noise", "probability of a flip", r"$\sigma$", "1", "mine"), "name 'noise' has 2 terms"),
        (VocabularyEntry("strength", "a force", r"$\lambda$", "1", "mine"), r"label '$\\lambda$' has 2 names"),
        (
            VocabularyEntry("sigma", "standard deviation of the noise, of mine", "", "1", "mine"),
            "deviation of the noise' has 2",
        ),
    ],
)
def test_a_planted_clash_is_found(planted, clash):
    assert any(clash in found for found in clashes([*list_vocabulary_entries(), planted]))


def test_each_exception_is_one():
    for name in NAMES_WITH_TWO_MEANINGS:
        assert len({entry.term for entry in list_vocabulary_entries() if entry.name == name}) == 2


def test_every_name_states_what_it_means():
    assert [entry.name for entry in list_vocabulary_entries() if not entry.term] == []
