from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import pytest

import worldloom as wl
from worldloom.compile import RecompileError


def test_compilations_are_counted_by_name():
    def fresh_name(x):
        return x * 3

    f, x, y = jax.jit(fresh_name), jnp.ones(3), jnp.ones(4)
    with wl.count_compiles() as compiles:
        f(x)
        f(x)
        f(y)
    assert (compiles.compiled + compiles.loaded)["jit(fresh_name)"] == 2
    assert compiles.seconds > 0
    with wl.count_compiles() as compiles:
        f(x)
        f(y)
    assert compiles.total == 0


def test_counting_ends_with_the_block():
    with wl.count_compiles() as compiles:
        pass
    jax.jit(lambda x: x - 17)(jnp.ones(3))
    assert compiles.total == 0


def test_no_compiles_fails_with_name_and_reason():
    @wl.compiled
    def stretched(x):
        return x + 1

    stretched(jnp.ones(2))
    longer = jnp.ones(3)
    with pytest.raises(RecompileError) as caught, wl.no_compiles():
        stretched(longer)
    assert "jit(stretched): 1x" in str(caught.value)
    assert "stretched: compiled again because x: f32[2] -> f32[3]" in str(caught.value)


def test_no_compiles_does_not_hide_an_error():
    with pytest.raises(ZeroDivisionError), wl.no_compiles():
        _ = 1 / 0


CHILD = """
    import jax, jax.numpy as jnp
    import worldloom as wl

    def decay(x, t):
        return 0.5 * x, x.sum()

    with wl.count_compiles() as compiles:
        result = wl.run(decay, jnp.ones(3), length=9, save=wl.Every(2))
    print(compiles.total, compiles.loaded.total(), float(result.state[0]))
"""


def start(**environment):
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CHILD)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert process.returncode == 0, process.stderr
    # On some processors XLA has two long errors for each program that it loads.
    assert process.stderr == ""
    compiled, loaded, value = process.stdout.split()
    assert float(value) == 0.5**9
    return int(compiled), int(loaded)


def test_a_second_process_compiles_nothing(tmp_path):
    compiled, loaded = start(WORLDLOOM_CACHE_DIR=str(tmp_path))
    assert compiled > 0
    assert loaded == 0
    assert start(WORLDLOOM_CACHE_DIR=str(tmp_path)) == (0, compiled)


def test_the_cache_can_be_switched_off(tmp_path):
    start(WORLDLOOM_CACHE_DIR="off", XDG_CACHE_HOME=str(tmp_path))
    assert list(tmp_path.rglob("*")) == []


def test_a_cache_of_the_users_own_is_respected(tmp_path):
    start(
        JAX_COMPILATION_CACHE_DIR=str(tmp_path / "own"), WORLDLOOM_CACHE_DIR=str(tmp_path / "ours")
    )
    assert not (tmp_path / "ours").exists()


def test_a_cache_that_cannot_be_made_is_only_a_warning(tmp_path, caplog):
    before = jax.config.jax_compilation_cache_dir
    (tmp_path / "file").write_text("")
    assert wl.enable_cache(tmp_path / "file" / "cache") is None
    assert "no compilation cache: cannot make" in caplog.text
    assert jax.config.jax_compilation_cache_dir == before


def test_the_default_folder_is_one_for_each_processor_and_jax(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = wl.default_cache_folder()
    assert folder.parent == tmp_path / "worldloom"
    assert folder.name.startswith(f"jax-{jax.__version__}-")
