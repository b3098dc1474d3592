"""`worldloom arc train`."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import worldloom as wl
from jaxarc import training
from worldloom import store
from worldloom.cli import main

SMALL = {"worlds": 16, "steps": 6, "updates": 6, "epochs": 2, "minibatches": 2}
SMALL |= {"width": 8, "layers": 1}
WORDS = [word for k, v in SMALL.items() for word in (f"--{k}", str(v))]
WORDS += ["--operations", "1", "2", "3", "4", "--episode-steps", "4", "--seed", "5"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--dataset", "AGI9"], "no data set 'AGI9'; there are: tiny, AGI1, AGI1-train"),
        (["--subset", "huge"], "no subset 'huge'; there are: up-to-5x5"),
        (["--tasks", "hole-9"], "tiny has no task 'hole-9'; ids like it: hole-1"),
        (["--worlds", "10"], "--worlds=10"),
        (["--learning-rate", "0.1", "--updates", "0"], "--updates=0: expected 1 or more"),
    ],
)
def test_what_cannot_be_trained_is_refused_as_usage(words, said, capsys):
    assert main(["arc", "train", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_it_prints_what_it_learned_and_goes_on_from_its_checkpoint(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["arc", "train", *WORDS, "--checkpoint", "run", "-o", "net.loom"]
    assert main(words) == 0
    head, titles, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("tiny: 4 tasks of up to 3 x 3, 16 worlds x 6 steps x 6 updates")
    assert head.endswith("2 devices, seed 5")
    records = wl.load_records("run/records")
    for i, row in enumerate(rows[:6]):
        figures = dict(zip(["update", "reward", "solved", "episodes"], row.split(), strict=False))
        assert figures["update"] == str(i + 1)
        assert float(figures["reward"]) == pytest.approx(records["reward"][i], abs=6e-5)
        share = records["solved"][i] / records["episodes"][i]
        assert figures["solved"] == f"{share:.1%}"
    assert "entropy" in titles

    # The file holds the network that the run ended with.
    env = training.environment_for(training.tiny_tasks(), operations=(1, 2, 3, 4), episode_steps=4)
    config = training.PPOConfig(**SMALL)
    result = training.train(env, jax.random.key(5), config=config, progress=False)
    np.testing.assert_array_equal(result.records.reward, records["reward"])
    network = store.load("net.loom", result.state.network)
    np.testing.assert_array_equal(network.embed, result.state.network.embed)

    # Once more: nothing is left to do, and the same is printed.
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[2:8] == rows[:6]
