"""Words that cross a file are nouns of the field."""

import inspect

import pytest

import caltest as ct

#: What says nothing of what a thing is.
EMPTY = {"found", "own", "said", "told", "asked", "seen", "held", "kept", "known", "drawn", "given"}


@pytest.mark.parametrize("name", sorted(set(ct.__all__) - {"__version__"}))
def test_public_words_are_nouns_of_the_field(name):
    value = getattr(ct, name)
    if not callable(value):
        return assert_plain(vars(value), name) if inspect.ismodule(value) else None
    fields = getattr(value, "__dataclass_fields__", {})
    try:
        parameters = inspect.signature(value).parameters
    except ValueError:
        parameters = {}
    assert_plain({*fields, *parameters}, name)
    return None


def assert_plain(words, name):
    assert not EMPTY & set(words), f"{name} has the words {EMPTY & set(words)}"
