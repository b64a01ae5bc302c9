"""The bounded cache of counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windowpane.models.tokens.exact_counter import CountCache


@given(keys=st.lists(st.integers(-99, 99), max_size=300), size=st.integers(1, 20))
def test_the_cache_is_bounded_and_never_wrong(keys: list[int], size: int) -> None:
    cache = CountCache(max_entries=size)
    for key in keys:
        cache.put(key, 2 * key)

        assert cache.get(key) == 2 * key
        assert len(cache) <= max(2, size)
        assert all(count in (None, 2 * other) for other in keys for count in [cache.get(other)])


def test_used_entries_outlive_unused_ones() -> None:
    cache = CountCache(max_entries=8)
    cache.put(-1, 1)
    for number in range(100):
        cache.put(number, number)

        assert cache.get(-1) == 1
