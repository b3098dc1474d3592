from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from worldloom import watch
from worldloom.watch import _profile


@jax.jit
def sorting(x):
    return jax.lax.fori_loop(0, 3, lambda i, x: jnp.sort(jnp.sin(x), axis=0), x)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    x = jax.block_until_ready(sorting(jnp.ones((256, 64))))
    with watch.profile(folder) as profile:
        with pytest.raises(watch.ProfileError, match="not complete"):
            _ = profile.table
        with pytest.raises(watch.ProfileError, match="not complete"):
            _ = profile.file
        for _ in range(4):
            x = sorting(x)  # not waited for: the block does that
    return profile


def test_the_table_has_the_kernels_of_the_program(recorded):
    kernels = {kernel.name.split(".")[0]: kernel for kernel in recorded.table}
    assert "sort" in kernels
    assert kernels["sort"].program.startswith("jit_sorting")
    assert kernels["sort"].calls >= 12  # 4 runs of 3 iterations
    assert kernels["sort"].total_ms > 0


def test_shares_add_up_and_the_costliest_is_first(recorded):
    shares = [kernel.share for kernel in recorded.table]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    assert min(shares) >= 0


def test_a_loop_does_not_count_what_runs_inside_it(recorded):
    kernels = {kernel.name.split(".")[0]: kernel for kernel in recorded.table}
    assert kernels["while"].total_ms < kernels["sort"].total_ms


def test_the_trace_stays_on_disk_and_can_be_read_again(recorded):
    assert recorded.file.is_file()
    assert recorded.folder in recorded.file.parents
    assert watch.read_kernels(recorded.file) == recorded.table


def test_the_table_prints(recorded, capsys):
    recorded.print(top=1)
    printed = capsys.readouterr().out
    assert "Top 1 of" in printed
    assert "share" in printed


def test_nothing_recorded_is_a_clear_error(tmp_path):
    with (
        pytest.raises(watch.ProfileError, match="no compiled program ran"),
        watch.profile(tmp_path),
    ):
        pass


def test_an_error_in_the_block_comes_through(tmp_path, recorded):
    with pytest.raises(ZeroDivisionError), watch.profile(tmp_path):
        raise ZeroDivisionError
    with watch.profile(tmp_path) as again:  # and the profiler is free again
        jax.block_until_ready(sorting(jnp.ones((256, 64))))
    assert again.table


class Event:
    def __init__(self, name, start, duration, kernel=True):
        self.name, self.start_ns, self.duration_ns = name, start, duration
        self.stats = [("hlo_op", name), ("hlo_module", "m")] if kernel else []


def test_own_time_is_the_time_without_what_is_inside():
    events = [
        Event("loop", 0, 100),
        Event("a", 10, 20),
        Event("b", 30, 40),
        Event("inside b", 30, 15),
        Event("python", 0, 500, kernel=False),
        Event("a", 100, 7),
    ]
    times = {}
    for (_, name), own in _profile._own_times(reversed(events)):
        times.setdefault(name, []).append(own)
    assert {name: sorted(own) for name, own in times.items()} == {
        "loop": [40],
        "a": [7, 20],
        "b": [25],
        "inside b": [15],
    }
