from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time

import pytest

from worldloom import bench
from worldloom.bench import _environment

QUICK = {"rounds": 4, "seconds": 0.002}


@pytest.fixture
def script(tmp_path):
    """Write a rival's script and return its path."""

    def write(body):
        path = tmp_path / "rival.py"
        path.write_text(textwrap.dedent(body))
        return path

    return write


def spin():
    end = time.perf_counter() + 2e-4
    while time.perf_counter() < end:
        pass


def test_a_rival_runs_in_turn_with_ours(script, tmp_path):
    path = script(
        """
        import os, sys, time
        import helper_beside_it
        print("chatter on stdout is no answer", flush=True)

        def setup(*, seconds, note):
            with open(note, "w") as file:
                print(os.getpid(), os.environ["RIVAL_THREADS"], file=file)
            def run():
                end = time.perf_counter() + seconds
                while time.perf_counter() < end:
                    pass
                print("seconds 1 1", flush=True)
            return run
        """
    )
    (tmp_path / "helper_beside_it.py").write_text("")
    rival = bench.Rival(
        path,
        options={"seconds": 8e-4, "note": str(tmp_path / "note")},
        environ={"RIVAL_THREADS": "3"},
        timeout=60,
    )
    result = bench.compare({"rival": rival, "ours": spin}, rounds=31, seconds=3e-4, items=10)
    assert result.failures == {}
    assert len(result["rival"].wall) == 31
    assert result["rival"].best >= 8e-4
    assert result["rival"].first is not None
    assert result["rival"].compiling is None
    assert "numpy" in result["rival"].packages
    assert 2.8 < result.ratio("ours").value < 5.5
    pid, threads = (tmp_path / "note").read_text().split()
    assert threads == "3"
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_rival_does_not_see_our_packages_path(script, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere/else")
    path = script(
        """
        import os, sys
        def setup():
            assert "PYTHONPATH" not in os.environ and "/somewhere/else" not in sys.path
            return lambda: None
        """
    )
    result = bench.compare({"rival": bench.Rival(path, timeout=60)}, **QUICK)
    assert result.failures == {}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def setup(): raise KeyError('no data')", "KeyError: 'no data'"),
        ("def setup(): return lambda: 1 / 0", "ZeroDivisionError"),
        ("import os\ndef setup(): os._exit(7)", "exit code 7 while setting up"),
        (
            "import os, sys\ndef setup():\n print('famous last words', file=sys.stderr)\n"
            " sys.stderr.flush()\n return lambda: os._exit(3)",
            "famous last words",
        ),
        ("x = 1", "does not define setup"),
        ("def setup(:", "SyntaxError"),
    ],
)
def test_a_rival_that_breaks_is_reported_and_ours_goes_on(script, body, message):
    rival = bench.Rival(script(body), timeout=60)
    result = bench.compare({"ours": spin, "rival": rival}, **QUICK)
    assert message in result.failures["rival"]
    assert "RivalError" in result.failures["rival"]
    assert len(result["ours"].wall) == 4


def test_a_rival_that_breaks_in_the_middle_is_reported(script):
    path = script(
        """
        import os
        calls = []
        def setup():
            def run():
                calls.append(1)
                if len(calls) > 3:
                    os._exit(9)
            return run
        """
    )
    result = bench.compare({"rival": bench.Rival(path, timeout=60)}, rounds=4, seconds=1e-7)
    assert "exit code 9" in result.failures["rival"]


def test_a_rival_that_hangs_is_given_up_and_burns_no_more_cpu(script, tmp_path):
    note = tmp_path / "pid"
    path = script(
        f"""
        import os
        def setup():
            with open({str(note)!r}, "w") as file:
                file.write(str(os.getpid()))
            while True:
                pass
        """
    )

    def is_gone():
        os.kill(int(note.read_text()), 0)

    rival = bench.Rival(path, timeout=3)
    result = bench.compare({"rival": rival, "is it gone": is_gone}, **QUICK)
    assert "did not answer within 3 s while setting up" in result.failures["rival"]
    assert "ProcessLookupError" in result.failures["is it gone"]


def test_an_interpreter_that_is_not_there_is_named(script):
    rival = bench.Rival(script("def setup(): return int"), python="/no/such/python")
    result = bench.compare({"rival": rival}, **QUICK)
    assert "cannot start /no/such/python" in result.failures["rival"]


def test_a_script_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="is not a file"):
        bench.Rival(tmp_path / "missing.py")


def test_arrays_of_jax_are_waited_for_over_there(script):
    path = script(
        """
        import sys, time, types
        jax = types.ModuleType("jax")
        jax.block_until_ready = lambda result: time.sleep(result)
        sys.modules["jax"] = jax
        def setup():
            return lambda: 0.003
        """
    )
    result = bench.compare({"rival": bench.Rival(path, timeout=60)}, rounds=2, seconds=0.003)
    assert result["rival"].best >= 0.003


@pytest.mark.parametrize("tool", ["uv", "venv"])
def test_an_environment_is_made_once_and_is_empty(script, tmp_path, monkeypatch, tool):
    monkeypatch.setenv("WORLDLOOM_CACHE_DIR", str(tmp_path / "cache"))
    if tool == "venv":
        monkeypatch.setattr(_environment, "_find_uv", lambda: None)
    elif _environment._find_uv() is None:
        pytest.skip("no uv to make an environment with: `pip install uv`")
    path = script(
        """
        import sys
        def setup():
            assert sys.prefix != sys.base_prefix
            try:
                import jax
            except ImportError:
                return lambda: None
            raise RuntimeError("the environment is not empty")
        """
    )
    rival = bench.Rival(path, requirements=(), timeout=60)
    result = bench.compare({"rival": rival}, **QUICK)
    assert result.failures == {}
    made = _environment.environment(())
    monkeypatch.setattr(_environment, "_call", None)  # a second one would need it
    assert _environment.environment(()) == made
    answer = subprocess.run([made, "-c", "import sys; print(sys.prefix)"], capture_output=True)
    assert str(tmp_path / "cache") in answer.stdout.decode()


@pytest.mark.parametrize("tool", ["uv", pytest.param("venv", marks=pytest.mark.slow)])
def test_what_cannot_be_installed_is_explained(script, tmp_path, monkeypatch, tool):
    monkeypatch.setenv("WORLDLOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    if tool == "venv":
        monkeypatch.setattr(_environment, "_find_uv", lambda: None)
    elif _environment._find_uv() is None:
        pytest.skip("no uv to make an environment with: `pip install uv`")
    rival = bench.Rival(
        script("def setup(): return int"), requirements=("a-package-nobody-made==1.2.3",)
    )
    result = bench.compare({"ours": spin, "rival": rival}, **QUICK)
    error = result.failures["rival"]
    assert "InstallError" in error
    assert "a-package-nobody-made==1.2.3" in error
    assert "offline" in error
    left = [p for p in (tmp_path / "cache" / "rivals").rglob("*") if p.is_file()]
    assert left == []


def test_a_version_of_python_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLDLOOM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(_environment, "_find_uv", lambda: None)
    with pytest.raises(bench.InstallError, match=r"python='2\.4'"):
        _environment.environment((), python="2.4")


def test_making_an_environment_can_take_too_long(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLDLOOM_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(bench.InstallError, match=r"took more than 0\.001 s"):
        _environment.environment(("x",), timeout=0.001)


def test_the_server_is_plain_old_python():
    source = _environment.__file__.replace("_environment", "_serve")
    done = subprocess.run(
        [sys.executable, "-I", "-S", source, "/no/such/script", "{}"],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stdout.startswith("error ")
    assert "FileNotFoundError" in done.stdout
