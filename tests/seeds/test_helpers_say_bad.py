"""Every helper that a seed defines is in the package, with the seed's signature, and can say "bad".

Most helpers are shown a good and a bad case in the tests of their own modules; `SAYS_BAD` names
those tests, so that none is lost. Here are the cases that no other test has.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from pages import MB, fresh_pages
from seeds.harness import FOLDER

ROOT = Path(__file__).parents[2]
PACKAGES = {"000": "jaxarc", "001": "jaxarc", "004": "acbo"}

# Defined in a seed, but not helpers to use: the seed's own way to wrap, to test or to show.
SHOWN_ONLY = {
    "optimized_reset": "a wrapper around `arc_reset`, to show `filter_jit`",
    "optimized_step": "a wrapper around `arc_step`, to show `filter_jit`",
    "process_action": "a wrapper around `arc_step`, to show `filter_jit`",
    "my_function": "a wrapper around `arc_step`, to show `filter_jit`",
    "validate_and_step": "a wrapper around `arc_step`, to show `JAXErrorHandler`",
    "create_jax_task_from_data": "of the made-up format of the seed's memory-mapped file",
    "test_performance_regression": "a test: below it is shown a step that has lost its speed",
}

OTHER_DEFAULTS = {
    ("MemoryMappedTaskLoader", "max_tasks"): "all tasks of the folder; the seed cuts it at 1000",
}

# Where each helper is shown something bad: the file below `tests`, and the test in it.
SAYS_BAD = {
    "find_optimal_batch_size": ("jaxarc/utils/test_helpers.py", "the_best_batch_size"),
    "hierarchical_batch_processing": ("jaxarc/utils/test_helpers.py", "workers_play"),
    "DynamicBatchProcessor": ("jaxarc/utils/test_helpers.py", "batches_grow"),
    "PerformanceMonitor": ("jaxarc/utils/test_helpers.py", "names_a_recompilation"),
    "profile_jit_compilation": ("jaxarc/utils/test_helpers.py", "compiled_against_uncompiled"),
    "verify_config_hashability": ("jaxarc/utils/test_helpers.py", "cannot_be_static"),
    "debug_jit_compilation": ("jaxarc/utils/test_helpers.py", "cannot_be_compiled"),
    "warm_up_functions": ("jaxarc/utils/test_helpers.py", "after_warming_up"),
    "detect_memory_leaks": ("jaxarc/utils/test_helpers.py", "a_leak_is_found"),
    "benchmark_performance": ("jaxarc/utils/test_helpers.py", "a_slow_step_misses"),
    "StateMemoryPool": ("jaxarc/utils/test_helpers.py", "the_pool_gives_back"),
    "create_optimized_episode_runner": ("jaxarc/utils/test_helpers.py", "an_episode_in_one"),
    "LazyTaskLoader": ("jaxarc/data/test_loaders.py", "a_lazy_task_is_fetched_once"),
    "MemoryMappedTaskLoader": ("jaxarc/data/test_loaders.py", "not_there_are_refused"),
    "load_state_efficiently": ("jaxarc/utils/test_serialization.py", "other_tasks_are_refused"),
    "save_state_efficiently": ("jaxarc/utils/test_serialization.py", "the_file_is_a_tenth"),
    "measure_compilation_speedup": ("acbo/training/test_measure.py", "gains_nothing"),
    "benchmark_sustained_performance": ("acbo/training/test_measure.py", "of_an_equal_one"),
    "monitor_memory_usage": ("acbo/training/test_measure.py", "of_temporaries"),
    "validate_fallback_behavior": ("acbo/training/test_step.py", "a_bad_fallback_is_found"),
}


def definitions(seed: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """The functions and classes that the blocks of a seed define; the first of each name."""
    (file,) = FOLDER.glob(f"{seed}*")
    blocks = re.findall(r"^```python\n(.*?)^```", file.read_text(encoding="utf-8"), re.S | re.M)
    found: dict[str, ast.FunctionDef | ast.ClassDef] = {}
    for block in blocks:
        try:
            body = ast.parse(block).body
        except SyntaxError:  # such as `f(...static)`: named in the tests of that seed
            continue
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, node)
    return found


DEFINED = {
    (package, name): node
    for seed, package in PACKAGES.items()
    for name, node in definitions(seed).items()
    if name not in SHOWN_ONLY
}


def parameters(node: ast.FunctionDef) -> dict[str, object]:
    """Names and defaults of a function of a seed."""
    given = [one.arg for one in node.args.args if one.arg != "self"]
    defaults = [ast.literal_eval(one) for one in node.args.defaults]
    bare = [inspect.Parameter.empty] * (len(given) - len(defaults))
    return dict(zip(given, [*bare, *defaults], strict=True))


def assert_takes(ours: object, wanted: dict[str, object], name: str) -> None:
    """Ours has the parameters of the seed, in its order, and the defaults that it gives."""
    found = inspect.signature(ours).parameters  # pyright: ignore[reportArgumentType]
    if any(one.kind is one.VAR_POSITIONAL for one in found.values()):
        return  # takes whatever it is given
    places = [one for one in found if one != "self"]
    assert places[: len(wanted)] == list(wanted), f"{name}{tuple(wanted)}"
    for one, default in wanted.items():
        if default is not inspect.Parameter.empty and (name, one) not in OTHER_DEFAULTS:
            mine = found[one].default
            same = list(mine) == default if isinstance(default, list) else mine == default
            assert same, f"{name}: {one}={default!r} in the seed, {mine!r} here"


def test_there_are_helpers_to_look_at():
    assert len(DEFINED) > 25
    assert set(SHOWN_ONLY) <= {name for seed in PACKAGES for name in definitions(seed)}


@pytest.mark.parametrize(("package", "name"), DEFINED, ids=lambda word: word)
def test_a_helper_of_a_seed_is_in_the_package_with_its_signature(package: str, name: str):
    ours = getattr(importlib.import_module(package), name)
    node = DEFINED[package, name]
    assert inspect.getdoc(ours)
    if isinstance(node, ast.FunctionDef):
        assert_takes(ours, parameters(node), name)
        return
    for method in (one for one in node.body if isinstance(one, ast.FunctionDef)):
        if method.name == "__init__":
            assert_takes(ours, parameters(method), name)
        elif not method.name.startswith("_"):
            member = inspect.getattr_static(ours, method.name)
            if not isinstance(member, property):
                assert_takes(member, parameters(method), f"{name}.{method.name}")


@pytest.mark.parametrize(("package", "name"), DEFINED, ids=lambda word: word)
def test_a_helper_of_a_seed_is_on_a_page(package: str, name: str):
    pages = list((ROOT / "docs" / "api").glob(f"{package}*.md"))
    assert any(f"- {name}\n" in page.read_text(encoding="utf-8") + "\n" for page in pages)


@pytest.mark.parametrize("name", SAYS_BAD)
def test_the_test_that_shows_it_something_bad_is_there(name: str):
    file, part = SAYS_BAD[name]
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    bodies = [body for body in re.split(r"^(?=def test_)", text, flags=re.M) if part in body]
    assert bodies, f"no test {part!r} in {file}"
    assert any(name in body for body in bodies) or name in text


def performance_test_of_the_seed(step) -> None:
    """The seed's own test of speed, with a step to look at and our measurements."""
    acbo = importlib.import_module("acbo")
    node = definitions("004")["test_performance_regression"]
    x = jnp.ones(8)
    names = {
        "create_test_model": lambda: (None, None),
        "create_test_batch": lambda: None,
        "create_jax_surrogate_train_step": lambda **_: step,
        "optax": SimpleNamespace(adam=lambda rate: None),
        "kl_divergence_loss": None,
        "test_config": None,
        "measure_compilation_speedup": lambda step, *_: acbo.measure_compilation_speedup(
            step, x, rounds=2
        ),
        "benchmark_sustained_performance": acbo.benchmark_sustained_performance,
        "regular_step": lambda x: jax.disable_jit()(step.__wrapped__)(x),
        "args": (x,),
    }
    exec(compile(ast.Module([node], []), "seed 004", "exec"), names)
    names["test_performance_regression"]()


def test_a_step_that_lost_its_speed_fails_the_test_of_the_seed():
    def one_operation(x):
        return x + 1

    with pytest.raises(AssertionError, match="below minimum 100x"):
        performance_test_of_the_seed(jax.jit(one_operation))


def test_a_step_of_many_small_operations_passes_it():
    def many_operations(x):
        for _ in range(400):
            x = jnp.sin(x) + 1
        return x

    performance_test_of_the_seed(jax.jit(many_operations))


def test_memory_tracking_tells_what_takes_memory_from_what_takes_none():
    from jaxtrace.utils import track_memory, track_operation_memory

    with track_memory(show=False) as meter:
        with track_operation_memory("nothing"):
            pass
        with track_operation_memory("a lot"):
            held = fresh_pages(64 * MB)
    by_name = {phase.name: phase for phase in meter.phases}
    assert list(by_name) == ["nothing", "a lot"]
    assert len(held) == 64 * MB
    assert by_name["nothing"].host_growth < 20 * MB < by_name["a lot"].host_growth
