"""Section 0: the tests pass on every supported Python with the JAX that the lock gives it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from worldloom import batch

ROOT = Path(__file__).parents[2]


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_newest_python_is_found_wherever_it_is(tmp_path):
    """As pyenv has it: a shim on the path that refuses, and folders of versions beside."""
    script(tmp_path / "path" / "python3.13", "exit 127")
    script(tmp_path / "path" / "python3", "echo 11 2 /usr/bin/python3")
    for minor, micro in ((10, 13), (11, 7), (12, 1), (12, 10), (13, 0)):
        python = tmp_path / "pyenv" / "versions" / f"3.{minor}.{micro}" / "bin" / "python"
        # What a Python of this version would say; one that is not supported says nothing.
        script(python, f"echo {minor} {micro} {python}" if minor > 10 else "true")
    environment = {
        "PATH": f"{tmp_path / 'path'}:/usr/bin:/bin",
        "PYENV_ROOT": str(tmp_path / "pyenv"),
        "HOME": str(tmp_path),
    }
    found = subprocess.run(
        ["sh", ROOT / ".ci" / "pythons"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    folders = [Path(line).parts[-3] for line in found if "pyenv" in line]
    assert folders == ["3.13.0", "3.12.10", "3.11.7"]


def test_the_pythons_that_are_looked_for_are_those_that_are_supported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least, most = re.findall(r"3\.(\d+)", project["requires-python"])
    text = (ROOT / ".ci" / "pythons").read_text()
    assert f"(3, {least}) <= version < (3, {most})" in text
    supported = [f"3.{minor}" for minor in range(int(most) - 1, int(least) - 1, -1)]
    assert " ".join(supported) in text
    assert " ".join(f"python{version}" for version in supported) in text


def test_each_version_is_named_once_the_newest_first():
    found = subprocess.run(
        ["sh", ROOT / ".ci" / "pythons"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    versions = [
        subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout
        for python in found
    ]
    assert versions == sorted(versions, reverse=True)
    assert len(set(versions)) == len(versions)


def test_a_script_that_is_only_imported_makes_no_folder(tmp_path):
    """A folder made on import is left open by whoever imports: a warning, an error here."""
    program = """
import gc, pathlib, runpy, shutil, sys, tempfile, warnings
warnings.simplefilter("error")
for path in sys.argv[1:]:
    names = runpy.run_path(path, run_name="imported")
made = list(pathlib.Path(tempfile.gettempdir()).iterdir())
names.clear()
gc.collect()
assert made == [], made
"""
    scripts = [ROOT / "benchmarks" / "baseline" / "gate.py"]
    done = subprocess.run(
        [sys.executable, "-c", program, *scripts],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def run_on_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Everything in a module but the bodies of its functions."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from run_on_import(child)


@pytest.mark.parametrize("folder", ["src", "benchmarks", "examples", "tests", "tools"])
def test_no_file_makes_a_folder_when_it_is_imported(folder):
    makers = {"TemporaryDirectory", "mkdtemp", "NamedTemporaryFile", "mkstemp"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in run_on_import(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in makers
    ]
    assert found == []


def sorted_sums(x):
    # XLA computes this in another way from a number of rows that each release chooses anew.
    return jax.lax.sort(jnp.sin(x), dimension=1).sum(1)


def products(x):
    return jnp.tanh(x @ x.T).sum(1)


def needs(fn, *args) -> int:
    found = jax.jit(fn).lower(*args).compile().memory_analysis()
    return (
        found.argument_size_in_bytes
        + found.output_size_in_bytes
        + found.temp_size_in_bytes
        - found.alias_size_in_bytes
    )


@pytest.mark.parametrize("fn", [sorted_sums, products])
def test_a_memory_prediction_is_what_xla_says(fn):
    found = batch.plan(fn, jax.ShapeDtypeStruct((2, 50), jnp.float32), memory="64 MiB")
    for size in (1, 2, 7, 63, 65, 100, 127, 300, 1000):
        assert found.bytes(size) == needs(fn, jax.ShapeDtypeStruct((size, 50), jnp.float32))


@hypothesis.settings(max_examples=8)
@hypothesis.given(size=st.integers(1, 400), width=st.integers(1, 40))
def test_a_memory_prediction_is_what_xla_says_at_any_size(size, width):
    found = batch.plan(sorted_sums, jax.ShapeDtypeStruct((2, width), jnp.float32), memory="64 MiB")
    assert found.bytes(size) == needs(sorted_sums, jax.ShapeDtypeStruct((size, width), jnp.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128, np.float32])
def test_arrays_of_numpy_are_planned_as_what_jax_makes_of_them(dtype):
    rows = np.ones((10, 3), dtype)
    found = batch.plan(lambda x: x + x, rows, memory="64 MiB")
    assert found.bytes(64) == 2 * 64 * 3 * jax.typeof(rows).dtype.itemsize
    result = batch.chunked_map(lambda x: x + x, rows)
    np.testing.assert_array_equal(result, np.full((10, 3), 2, jax.typeof(rows).dtype))


def test_keys_are_planned():
    keys = jax.random.split(jax.random.key(0), 6)
    found = batch.plan(jax.vmap(jax.random.uniform), keys, memory="64 MiB")
    assert found.bytes(64) >= 64 * 12
