"""Issue 24, ARC 7: what the guides show runs as they show it."""

from __future__ import annotations

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from seeds.harness import Seed, execute

import jaxarc
from jaxarc.envs import (
    BboxAction,
    EnvironmentConfig,
    JaxArcConfig,
    MaskAction,
    PointAction,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    arc_reset,
)
from jaxarc.envs._state import empty_history, record
from worldloom import WorldloomError

GUIDE = Seed("000", package="jaxarc", prelude="")
OTHER_GUIDE = Seed("001", package="jaxarc", prelude="")
NAMES = """
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxarc import *

config = {config}
task = create_mock_task()
state, obs = arc_reset(jax.random.PRNGKey(42), config, task)
point_action = PointAction(operation=jnp.array(0), row=jnp.array(5), col=jnp.array(5))
bbox_action = BboxAction(
    operation=jnp.array(0), r1=jnp.array(3), c1=jnp.array(3), r2=jnp.array(7), c2=jnp.array(7)
)
mask = jnp.zeros((30, 30), dtype=jnp.bool_).at[10:15, 10:15].set(True)
mask_action = MaskAction(operation=jnp.array(0), selection=mask)
"""


def block_with(guide, text):
    return next(block.code for block in guide.blocks.values() if text in block.code)


@pytest.mark.parametrize(
    "config",
    [
        "JaxArcConfig()",
        "JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=100), "
        'action=UnifiedActionConfig(selection_format="point"))',
    ],
)
def test_one_configuration_takes_all_three_actions(config):
    """The block of seed 000, untouched."""
    namespace = {"__name__": "guide"}
    execute(NAMES.format(config=config), "<names>", namespace)
    execute(block_with(GUIDE, "mask_result = process_action("), "<seed 000>", namespace)
    for kind in ("point", "bbox", "mask"):
        state, _, _, _, info = namespace[f"{kind}_result"]
        assert bool(info.valid)
        assert int(state.step_count) == 1


@pytest.mark.parametrize("kept", ["point", "bbox", "mask"])
def test_a_history_keeps_what_its_form_can_hold_and_marks_the_rest(kept):
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=10),
        dataset=UnifiedDatasetConfig(max_grid_height=9, max_grid_width=12),
        action=UnifiedActionConfig(selection_format=kept),
    )
    cells = np.random.default_rng(0).random((9, 12)) < 0.5
    shown = {
        "point": (PointAction(3, 4, 11), [4, 11]),
        "bbox": (BboxAction(3, 1, 2, 7, 8), [1, 2, 7, 8]),
        "mask": (MaskAction(3, jnp.asarray(cells)), None),
    }
    for given, (action, fields) in shown.items():
        one = jax.tree.map(lambda leaf: leaf[None], action)
        number = jnp.array([4])
        history = record(empty_history(config, 1), one, number, number, jnp.array([True]), config)
        kept_record = np.asarray(history[4, :, 0])
        assert kept_record[0] == 3
        assert tuple(kept_record[-3:]) == (4, 4, 1)
        selection = kept_record[1:-3]
        if kept == "mask":
            bits = np.unpackbits(selection.reshape(9, 2), axis=1, bitorder="little")[:, :12]
            np.testing.assert_array_equal(bits, action.to_selection_mask((9, 12)))
        elif kept == given:
            np.testing.assert_array_equal(selection, fields)
        elif kept == "bbox" and given == "point":
            np.testing.assert_array_equal(selection, [4, 11, 4, 11])
        else:
            assert (selection == 255).all()


def test_the_guides_own_load_function_says_what_to_call(tmp_path):
    """Seed 001 hands `state.task_data` to `eqx.tree_at`."""
    namespace = {"__name__": "guide"}
    execute(NAMES.format(config="JaxArcConfig()"), "<names>", namespace)
    execute("from jaxarc import extract_task_id_from_index", "<names>", namespace)
    execute(block_with(OTHER_GUIDE, "def load_state_efficiently"), "<seed 001>", namespace)
    tasks = jaxarc.data.load("AGI1-train")
    state, _ = arc_reset(jax.random.key(0), JaxArcConfig(), tasks.get_task_by_index(3))
    dummy, _ = arc_reset(jax.random.key(1), JaxArcConfig(), tasks.get_task_by_index(0))
    namespace["save_state_efficiently"](state, tmp_path / "guide.eqx")
    with pytest.raises(WorldloomError) as caught:
        namespace["load_state_efficiently"](tmp_path / "guide.eqx", tasks, dummy)
    said = str(caught.value)
    assert "jaxarc.load_state_efficiently(path, parser, dummy_state)" in said
    assert said.count(". ") == 0  # one sentence
    assert isinstance(caught.value, AttributeError)
    assert not hasattr(state, "task_data")
    # What it says works.
    jaxarc.save_state_efficiently(state, tmp_path / "own.loom")
    again = jaxarc.load_state_efficiently(tmp_path / "own.loom", tasks, dummy)
    assert eqx.tree_equal(again, state)
    task = tasks.get_task_by_index(int(again.task_index))
    assert int(task.task_index) == 3


def test_the_tests_of_the_guides_set_no_option_that_the_guides_do_not():
    import inspect

    from seeds import test_000, test_001

    for module in (test_000, test_001):
        assert not re.search(r"record_history", inspect.getsource(module))
