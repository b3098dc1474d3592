from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import check
from worldloom.check import _mode, _report


@pytest.fixture(autouse=True)
def _raise_mode():
    with check.using("raise"):
        yield


def test_set_and_ask():
    for mode in ("raise", "nan", "breakpoint", "off"):
        check.set_mode(mode)
        assert check.mode() == mode


def test_using_puts_the_mode_back_even_after_an_error():
    check.set_mode("off")
    with contextlib.suppress(KeyError), check.using("nan"):
        assert check.mode() == "nan"
        raise KeyError
    assert check.mode() == "off"


def test_an_unknown_mode_lists_the_known_ones():
    with pytest.raises(check.CheckUsageError, match=r"'ignore'.*'raise', 'nan', 'breakpoint'"):
        check.set_mode("ignore")
    with pytest.raises(check.CheckUsageError), check.using("NaN"):
        pass
    assert check.mode() == "raise"


def _fresh_mode_module():
    spec = importlib.util.spec_from_file_location("fresh_mode", _mode.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("mode", ["raise", "nan", "breakpoint", "off"])
def test_the_first_mode_comes_from_the_environment(mode, monkeypatch):
    monkeypatch.setenv("EQX_ON_ERROR", mode)
    assert _fresh_mode_module().mode() == mode
    monkeypatch.delenv("EQX_ON_ERROR")
    assert _fresh_mode_module().mode() == "raise"


def test_an_unknown_mode_in_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("EQX_ON_ERROR", "explode")
    with pytest.raises(check.CheckUsageError, match=r"EQX_ON_ERROR is 'explode'.*'off'"):
        _fresh_mode_module()


# The debugger.


def inner(x):
    return check.require(x < 3, {"x": x}, "too large")["x"]


def outer(x):
    return inner(x)


def test_the_debugger_sees_all_worlds(monkeypatch):
    seen = {}
    monkeypatch.setattr("sys.breakpointhook", lambda: seen.update(sys._getframe(1).f_locals))
    with check.using("breakpoint"):
        out = jax.jit(jax.vmap(inner))(jnp.arange(5.0))
    assert np.array_equal(np.isnan(out), [False, False, False, True, True])
    assert np.array_equal(seen["failed"], [False, False, False, True, True])
    assert np.array_equal(seen["value"]["x"], np.arange(5))
    assert seen["error"].worlds == ((3,), (4,))


@pytest.mark.parametrize("frames", [1, 3])
def test_as_many_frames_as_asked_for(frames, monkeypatch, capsys):
    monkeypatch.setenv("EQX_ON_ERROR_BREAKPOINT_FRAMES", str(frames))
    monkeypatch.setattr("sys.breakpointhook", lambda: None)
    with check.using("breakpoint"):
        jax.block_until_ready(jax.jit(lambda x: outer(x))(jnp.float32(9.0)))
    places = [line for line in capsys.readouterr().err.splitlines() if "test_modes.py" in line]
    called_from = [line.rsplit(" in ")[1] for line in places if "required at" not in line]
    assert called_from == ["inner", "outer", "<lambda>"][:frames]


@pytest.mark.parametrize("text", ["none", "0", "-1"])
def test_a_wrong_number_of_frames_is_named(text, monkeypatch):
    monkeypatch.setenv("EQX_ON_ERROR_BREAKPOINT_FRAMES", text)
    with pytest.raises(check.CheckUsageError, match=f"FRAMES is '{text}'"):
        _report.user_frames()


DEBUGGED = """
import jax, jax.numpy as jnp
from worldloom import check
check.set_mode("breakpoint")
f = jax.jit(jax.vmap(lambda x: check.require(x < 3, x, "too large")))
with check.reraise():
    print("result", f(jnp.arange(5.0)))
"""


@pytest.mark.parametrize(
    ("commands", "code", "expected"),
    [
        ("p failed.sum() + 40\nc\n", 0, "result [ 0.  1.  2. nan nan]"),
        ("p failed.sum() + 40\nq\n", 1, "CheckError: too large"),
    ],
    ids=["continue", "quit"],
)
def test_a_real_debugger(commands, code, expected):
    done = subprocess.run(
        [sys.executable, "-c", DEBUGGED],
        input=commands,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, output
    assert "42" in output
    assert expected in output


# The persistent cache.

CACHED = """
import sys
import jax, jax.numpy as jnp
from worldloom import check
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

@jax.jit
def double(x):
    return jax.vmap(lambda y: check.require(y < 3, 2 * y, "too large"))(x)

print(double(jnp.arange(3.0)))
for mode in ("raise", "nan"):
    check.set_mode(mode)
    try:
        with check.reraise():
            print(double(jnp.arange(1.0, 4.0)))
    except check.CheckError as error:
        print("raised", error.message, error.worlds)
"""


def test_checks_still_work_in_a_second_process_with_the_same_cache(tmp_path):
    def process():
        return subprocess.run(
            [sys.executable, "-c", CACHED, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        ).stdout

    first = process()
    assert first == "[0. 2. 4.]\nraised too large ((2,),)\n[ 2.  4. nan]\n"
    assert any(tmp_path.iterdir()), "nothing was cached: this test shows nothing"
    assert process() == first
