from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import worldloom
from worldloom import doctor
from worldloom.cli import main
from worldloom.doctor import _examine, _facts, _selfcheck

RIGHT = (
    '{"rows": {"rows": 16385, "dtype": "float64", "wrong": 0, "first": []}}',
    '{"rows": {"rows": 32769, "dtype": "float32", "wrong": 0, "first": []}}',
    '{"ranks": {"right": true}}',
)
WRONG_ROW = '{"rows": {"rows": 32769, "dtype": "float32", "wrong": 1, "first": [32768]}}'


def pretend(*lines: str, then: str = "pass") -> list[str]:
    """A process that answers as the reproducers would, and then does `then`."""
    body = "\n".join(f"print({line!r}, flush=True)" for line in lines)
    return [sys.executable, "-c", f"import os, signal, sys, time\n{body}\n{then}"]


@pytest.fixture(scope="module")
def diagnosis() -> doctor.Diagnosis:
    return doctor.examine()


def test_this_environment_is_well(diagnosis: doctor.Diagnosis):
    assert diagnosis.healthy, str(diagnosis)
    assert len(diagnosis.checks) == 3


def test_the_text_names_what_there_is(diagnosis: doctor.Diagnosis):
    import jax

    text = str(diagnosis)
    assert re.search(rf"jax +{re.escape(jax.__version__)}", text)
    assert re.search(rf"worldloom +{re.escape(worldloom.__version__)}", text)
    assert f"cpu:{len(jax.devices()) - 1} cpu" in text
    assert text.endswith("All is well.")
    assert 0 < diagnosis.facts.memory_available <= diagnosis.facts.memory_total


def test_json_says_the_same(diagnosis: doctor.Diagnosis):
    found = json.loads(diagnosis.to_json())
    assert found["healthy"] is True
    assert found["facts"]["versions"] == diagnosis.facts.versions
    assert [check["ok"] for check in found["checks"]] == [True, True, True]


def test_a_wrong_row_is_told_with_what_it_means_and_what_to_install():
    found = doctor.examine(words=pretend(RIGHT[0], WRONG_ROW, RIGHT[2]))
    assert not found.healthy
    text = str(found)
    assert "1 of 32,769 rows wrong in float32, from row 32,768" in text
    assert "No result made with it can be trusted" in text
    assert text.endswith("pip install 'jax>=0.10.1,!=0.10.2,!=0.11.0,!=0.11.1'")
    assert json.loads(found.to_json())["healthy"] is False


def test_a_crash_is_told_and_does_not_take_us_along():
    _, rows, ranks = doctor.self_check(
        words=pretend(*RIGHT[:2], then="os.kill(os.getpid(), signal.SIGSEGV)")
    )
    assert rows.ok
    assert not ranks.ok
    assert ranks.found == "crashed with SIGSEGV"


def test_a_hang_is_told():
    _, rows, ranks = doctor.self_check(
        words=pretend(*RIGHT[:2], then="time.sleep(600)"), timeout=3.0
    )
    assert rows.ok
    assert ranks.found == "did not end within 3 seconds"


def test_reproducers_that_never_start_are_not_well():
    _, rows, ranks = doctor.self_check(words=pretend(then="sys.exit('no jax here')"))
    assert not rows.ok
    assert not ranks.ok
    assert rows.found == "ended with exit code 1 (no jax here)"


def test_wrong_sums_are_told():
    found = doctor.self_check(words=pretend(*RIGHT[:2], '{"ranks": {"right": false}}'))
    assert [check.ok for check in found] == [True, True, False]


@pytest.mark.parametrize("version", ["0.10.2", "0.11.0", "0.11.1"])
def test_an_excluded_release_is_not_well(version: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("jax.__version__", version)
    check = _selfcheck.version_check()
    assert not check.ok
    assert version in check.meaning
    assert f"!={version}" in check.remedy


def test_the_doctor_knows_every_release_that_the_dependencies_exclude():
    document = tomllib.loads(Path(__file__).parents[3].joinpath("pyproject.toml").read_text())
    (requirement,) = [
        line for line in document["project"]["dependencies"] if re.match(r"jax\b", line)
    ]
    excluded = set(re.findall(r"!=([\d.]+)", requirement))
    assert "0.10.2" in excluded
    assert excluded <= set(_selfcheck.KNOWN_BAD)


def test_the_reproducers_look_at_the_numbers(monkeypatch: pytest.MonkeyPatch):
    from worldloom.doctor import _reproducers

    assert _reproducers.wrong_rows(_reproducers.np.float32, 50) == []
    assert _reproducers.multiply_and_sum((2, 3), (2, 3), 1)

    def one_row_wrong(function):
        return lambda vectors: (
            _reproducers.np.asarray(function(vectors))
            + (_reproducers.np.arange(len(vectors)) == 49)
        )

    monkeypatch.setattr(_reproducers.jax, "jit", one_row_wrong)
    assert _reproducers.wrong_rows(_reproducers.np.float32, 50) == [49]


def test_the_cache_is_counted(tmp_path: Path):
    assert _facts.read_cache(None) == doctor.Cache(None)
    (tmp_path / "jit_f-1-cache").write_bytes(b"12345")
    (tmp_path / "jit_f-1-atime").write_bytes(b"12")
    (tmp_path / "folder").mkdir()
    found = _facts.read_cache(str(tmp_path))
    assert found == doctor.Cache(str(tmp_path), entries=1, bytes=7, writable=True)
    missing = tmp_path / "not" / "yet"
    assert _facts.read_cache(str(missing)) == doctor.Cache(str(missing), writable=True)


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        (doctor.Cache(None), "off"),
        (doctor.Cache("/x", 3, 2**21, writable=False), "not writable"),
        (doctor.Cache("/x", 3, 2**21, writable=True), "3 programs, 2.0 MiB"),
    ],
)
def test_the_state_of_the_cache_is_told(cache: doctor.Cache, said: str):
    assert said in "\n".join(_examine._cache_lines(cache))


def test_missing_extras_are_named():
    found = _facts.missing_of_extras(
        [
            "numpy>=2",
            "pytest>=8; extra == 'plot'",
            "no-such-package>=1; extra == 'plot'",
            "pytest>=8; extra == 'hydra'",
            "no-such-package; extra == 'dev'",
        ]
    )
    assert found == {"plot": ("no-such-package",), "hydra": ()}


def test_the_command_exits_with_1_and_prints_the_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(_examine, "command", lambda: pretend(RIGHT[0], WRONG_ROW, RIGHT[2]))
    assert main(["doctor"]) == 1
    assert "No result made with it can be trusted" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["healthy"] is False
    monkeypatch.setattr(_examine, "command", lambda: pretend(*RIGHT))
    assert main(["doctor"]) == 0


@pytest.mark.slow
def test_an_environment_with_jax_0_10_2_exits_with_1(tmp_path: Path):
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        pytest.skip("no uv to make an environment with: `pip install uv`")
    python = tmp_path / "bad" / "bin" / "python"
    wanted = "jax==0.10.2 jaxlib==0.10.2 equinox jaxtyping numpy omegaconf optax psutil rich tyro"
    for words in (
        ["venv", "--quiet", "--python", sys.executable, str(tmp_path / "bad")],
        ["pip", "install", "--quiet", "--python", str(python), *wanted.split(), "zstandard"],
    ):
        subprocess.run([uv, *words], check=True, timeout=280)
    source = str(Path(worldloom.__file__).parents[1])
    found = subprocess.run(
        [str(python), "-m", "worldloom.cli", "doctor"],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 1, found.stdout + found.stderr
    assert "JAX 0.10.2 must not be used" in found.stdout
    assert "1 of 32,769 rows wrong in float32" in found.stdout
