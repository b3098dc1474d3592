"""Issue 24, ARC 3: every option is checked, and every option changes something."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc import training
from jaxarc.envs import (
    ConfigError,
    EnvironmentConfig,
    JaxArcConfig,
    ObservationConfig,
    SimilarityReward,
    UnifiedActionConfig,
    UnifiedDatasetConfig,
    VisualizationConfig,
    batch_reset,
    batch_step,
)
from jaxarc.training import PPOConfig
from jaxarc.utils.visualization import MemorySettings
from worldloom import WorldloomError, cli

ENVIRONMENT = (
    EnvironmentConfig,
    UnifiedDatasetConfig,
    UnifiedActionConfig,
    ObservationConfig,
    VisualizationConfig,
    SimilarityReward,
)
PART = {
    EnvironmentConfig: "environment",
    UnifiedDatasetConfig: "dataset",
    UnifiedActionConfig: "action",
    ObservationConfig: "observation",
    VisualizationConfig: "visualization",
    SimilarityReward: "reward",
}
ANOTHER = {
    "max_episode_steps": 7,
    "episode_mode": "test",
    "max_attempts": 3,
    "pair_controls": True,
    "record_history": False,
    "debug_level": 1,
    "max_grid_height": 4,
    "max_grid_width": 4,
    "selection_format": "bbox",
    "input": True,
    "clipboard": True,
    "demos": 2,
    "step": True,
    "enabled": True,
    "similarity_weight": 3,
    "success_bonus": 3.0,
    "step_penalty": 0.5,
    "submit_penalty": 0.5,
}
"""Another value than the default, by field."""

TINY = training.tiny_tasks(pairs=2)


def program(config: JaxArcConfig) -> str:
    """A reset and a step, as JAX traces them."""
    buffer = TINY.buffer(height=config.canvas[0], width=config.canvas[1])
    keys = jax.random.split(jax.random.key(0), 2)

    def play(keys):
        state, seen = batch_reset(keys, config, buffer)
        action = jaxarc.make(TINY, config=config).random_action(keys[0], worlds=2)
        return state, seen, batch_step(state, action, config, tasks=buffer)

    return str(jax.make_jaxpr(play)(keys))


SMALL = {"dataset": UnifiedDatasetConfig(max_grid_height=3, max_grid_width=3)}


@pytest.mark.parametrize("kind", ENVIRONMENT, ids=lambda kind: kind.__name__)
def test_every_option_of_the_environment_changes_the_program(kind):
    base = dict(SMALL)
    if kind is EnvironmentConfig:
        # Attempts are counted of test pairs.
        base["environment"] = EnvironmentConfig(pair_controls=True)
    part = base.get(PART[kind], kind())
    plain = program(JaxArcConfig(**{**base, PART[kind]: part}))
    assert program(JaxArcConfig(**{**base, PART[kind]: dataclasses.replace(part)})) == plain
    for field in dataclasses.fields(kind):
        value = ANOTHER.get(field.name, (0, 34) if kind is UnifiedActionConfig else True)
        if getattr(part, field.name) == value:
            value = not value
        changed = dataclasses.replace(part, **{field.name: value})
        other = JaxArcConfig(**{**base, PART[kind]: changed})
        assert program(other) != plain, f"{kind.__name__}.{field.name} changes nothing"


@pytest.mark.slow
def test_every_option_of_a_training_changes_something(monkeypatch):
    env = training.environment_for(TINY, operations=(1, 2))
    base = PPOConfig(worlds=8, steps=2, updates=3, epochs=1, minibatches=2, width=4, layers=1)
    devices = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("worlds",))

    def trained(config: PPOConfig) -> tuple[str, int]:
        def update(key):
            state = training._train._begin(key, env.buffer, env=env.config, config=config)
            network, memory, worlds, acting = state
            step = training.TrainStep(env.buffer, env.config, config, devices)
            return step(training.TrainState(network, memory, worlds, acting), jnp.int32(0))[1]

        return str(jax.make_jaxpr(update)(jax.random.key(0)))

    plain = trained(base)
    assert trained(dataclasses.replace(base)) == plain
    for field in dataclasses.fields(PPOConfig):
        value = getattr(base, field.name)
        value = value * 2 if isinstance(value, int) else value / 2
        other = dataclasses.replace(base, **{field.name: value})
        if field.name == "updates":  # the length of the loop around it
            monkeypatch.setattr(training._train.wl, "run", lambda *_, length, **options: length)
            assert training.train(env, jax.random.key(0), config=other, devices=devices) == 6
        else:
            assert trained(other) != plain, f"PPOConfig.{field.name} changes nothing"


def test_what_visualization_enabled_does(capsys):
    """It was read by nothing. That it is off by default shows in the program, above."""
    from jaxarc.utils.visualization import _callbacks

    config = JaxArcConfig(
        environment=EnvironmentConfig(record_history=False),
        dataset=UnifiedDatasetConfig(max_grid_height=3, max_grid_width=3),
        visualization=VisualizationConfig(enabled=True),
    )
    env = jaxarc.make(TINY, config=config)
    act = lambda *_: env.random_action(jax.random.key(1), worlds=2)  # noqa: E731
    state, _ = env.reset(jax.random.key(0), worlds=2)
    for play in (
        lambda: env.step(state, act()),
        lambda: env.rollout(act, None, jax.random.key(0), 2, worlds=2),
    ):
        _callbacks._rates.clear()
        jax.block_until_ready(play())
        jax.effects_barrier()
        assert "world 0" in capsys.readouterr().out


BAD_ENVIRONMENT = {
    "max_episode_steps": [0, -1, 65_536, 1.0, True, "5", None, math.nan],
    "episode_mode": ["eval", None, 1, ("train",), ["train"]],
    "max_attempts": [0, 16, 255, True, "2"],
    "pair_controls": ["no", 0, 1, None, [], np.True_],
    "record_history": ["no", 0, 1, None],
    "debug_level": [2, -1, True, "0", 1.0],
    "max_grid_height": [0, 33, 3.0, True, "3"],
    "max_grid_width": [0, 33, 3.0, True, "3"],
    "selection_format": ["rectangle", None, 0, ["point"]],
    "allowed_operations": [
        (),
        (1, 1, 1),
        (42,),
        (-1,),
        (1.0,),
        (True,),
        ("1",),
        [1, 2],
        5,
        "12",
        {1, 2},
    ],
    "input": ["no", 1, None],
    "clipboard": ["no", 1, None],
    "demos": [-1, 11, True, "1", 1.0],
    "step": ["no", 1, None],
    "enabled": [5, "no", None],
}


@pytest.mark.parametrize("kind", ENVIRONMENT[:-1], ids=lambda kind: kind.__name__)
def test_options_of_the_wrong_kind_are_refused(kind):
    for field in dataclasses.fields(kind):
        bad = BAD_ENVIRONMENT[field.name]
        if kind is ObservationConfig and field.name == "allowed_operations":
            bad = ["no", 1, (1,)]
        for value in bad:
            with pytest.raises(ConfigError, match=field.name):
                kind(**{field.name: value})
    with pytest.raises(ConfigError, match="has no option 'enable_everything'"):
        kind(enable_everything=True)


def test_parts_of_the_wrong_kind_are_refused():
    for name in ("environment", "dataset", "action", "observation", "visualization"):
        for value in ({}, None, 3, "train", SimilarityReward(), EnvironmentConfig):
            with pytest.raises(ConfigError, match=name):
                JaxArcConfig(**{name: value})


def test_operations_that_do_not_exist_without_pair_controls_are_refused():
    for allowed in ((35,), (3, 40), (41,)):
        action = UnifiedActionConfig(allowed_operations=allowed)
        with pytest.raises(ConfigError, match="pair_controls=True"):
            JaxArcConfig(action=action)
        config = JaxArcConfig(action=action, environment=EnvironmentConfig(pair_controls=True))
        assert config.operations == allowed


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(PPOConfig)])
def test_hyper_parameters_are_numbers_in_their_range(name):
    for value in (math.nan, math.inf, -math.inf, -1, "1", None, True, [1]):
        with pytest.raises(ConfigError, match=name):
            PPOConfig(**{name: value})
    if isinstance(getattr(PPOConfig(), name), int):
        for value in (0, 1.5, 4.0):
            with pytest.raises(ConfigError, match=name):
                PPOConfig(**{name: value})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--operations", "35"], "--operations=(35,)"),
        (["--operations", "1", "1"], "--operations=(1, 1)"),
        (["--operations", "99"], "--operations=(99,)"),
        (["--operations", "-3"], "--operations"),
        (["--learning-rate", "nan"], "--learning-rate=nan"),
        (["--learning-rate", "-1"], "--learning-rate=-1"),
        (["--entropy-weight", "inf"], "--entropy-weight=inf"),
        (["--episode-steps", "0"], "--episode-steps=0"),
        (["--demos", "11"], "--demos=11"),
        (["--demos", "-1"], "--demos=-1"),
        (["--worlds", "-4"], "--worlds=-4"),
        (["--updates", "0"], "--updates=0"),
        (["--minibatches", "0"], "--minibatches=0"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_the_shell_gives_a_sentence(words, said, capsys):
    assert cli.main(["arc", "train", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert "EnvironmentConfig" not in error


@pytest.mark.parametrize(
    "bad",
    [{"max_cache_mb": x} for x in (math.nan, -1.0, math.inf, 501.0)] + [{"max_total_mb": 1.0}],
)
def test_limits_of_memory_are_checked(bad):
    with pytest.raises(WorldloomError, match=next(iter(bad))):
        MemorySettings(**bad)


def test_small_made_up_tasks_are_checked():
    for options in ({"side": 0}, {"side": 31}, {"pairs": 0}, {"pairs": 129}, {"side": True}):
        with pytest.raises(ConfigError, match=next(iter(options))):
            training.tiny_tasks(**options)
