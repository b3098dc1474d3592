from __future__ import annotations

import worldloom as wl


def test_fresh_seeds_differ_and_fit_an_int32():
    seeds = {wl.fresh_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**31 for seed in seeds)
