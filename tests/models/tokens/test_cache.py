"""The bounded cache of counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windowpane.models.tokens.exact_counter import CountCache, content_key


@given(keys=st.lists(st.binary(min_size=1, max_size=2), max_size=300), size=st.integers(1, 20))
def test_the_cache_is_bounded_and_never_wrong(keys: list[bytes], size: int) -> None:
    cache = CountCache(max_entries=size)
    for key in keys:
        cache.put(key, key[0])

        assert cache.get(key) == key[0]
        assert len(cache) <= max(2, size)
        assert all(count in (None, other[0]) for other in keys for count in [cache.get(other)])


def test_used_entries_outlive_unused_ones() -> None:
    cache = CountCache(max_entries=8)
    cache.put(b"system prompt", 1)
    for number in range(100):
        cache.put(str(number).encode(), number)

        assert cache.get(b"system prompt") == 1


def test_lone_surrogates_have_keys() -> None:
    assert content_key("\ud800") != content_key("\ud801")
