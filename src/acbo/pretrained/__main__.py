"""Train the networks of the package anew.

`python -m acbo.pretrained surrogate --out FOLDER` takes about 75 minutes on two cores, `policy`
about ten. Both can be stopped and go on from their checkpoint. In a checkout, `src/acbo/pretrained`
is where the package has its own.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from acbo._files import save_network
from acbo.policy import train_policy
from acbo.pretrained import _recipe as recipe
from acbo.pretrained._load import pretrained_surrogate
from acbo.surrogate import Surrogate, SurrogateConfig, calibrated, train_surrogate
from worldloom.store._files import atomic_write

_POINTS = 40


def main() -> None:
    """Train one network; write it and its learning curve."""
    parser = argparse.ArgumentParser(prog="python -m acbo.pretrained", description=__doc__)
    parser.add_argument("network", choices=("surrogate", "policy"))
    parser.add_argument("--out", type=Path, required=True, help="the folder to write into")
    parser.add_argument("--checkpoint", type=Path, help="a folder; a stopped run goes on from it")
    told = parser.parse_args()
    if told.out.exists() and not told.out.is_dir():
        parser.error(f"--out {str(told.out)!r} is a file; name a folder")
    train = _surrogate if told.network == "surrogate" else _policy
    network, result, numbers, facts = train(told.checkpoint)
    facts |= {"seed": recipe.SEED, "curve": _curve(numbers)}
    save_network(told.out / f"{told.network}.loom", network, level=19)
    with atomic_write(told.out / f"{told.network}.json") as file:
        file.write((json.dumps(facts, indent=1) + "\n").encode())
    print(result)


def _surrogate(checkpoint: Path | None):
    key = jax.random.key(recipe.SEED)
    begin: SurrogateConfig | Surrogate = recipe.SURROGATE
    results = []
    for number, (curriculum, config) in enumerate(recipe.STAGES):
        folder = None if checkpoint is None else checkpoint / f"stage{number}"
        result = train_surrogate(
            jax.random.fold_in(key, number) if number else key,
            curriculum,
            surrogate=begin,
            config=config,
            checkpoint=folder,
            resume=folder is not None,
        )
        begin = result.state.average
        results.append(result)
    curriculum, _ = recipe.STAGES[0]
    held_out = jax.vmap(lambda key: curriculum.studies(key, recipe.CALIBRATION))
    graphs, samples = jax.jit(held_out)(jax.random.split(jax.random.fold_in(key, 1), 24))
    graphs, samples = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (graphs, samples)
    )
    network, temperature = eqx.filter_jit(calibrated)(results[-1].state.average, graphs, samples)
    steps = [config.steps for _, config in recipe.STAGES]
    facts = {"steps": steps, "temperature": float(temperature)}
    numbers = {
        "edge_loss": np.concatenate([result.records.edge_loss for result in results]),
        "set_loss": np.concatenate([result.records.parent_set_loss for result in results]),
    }
    return network, results[-1], numbers, facts


def _policy(checkpoint: Path | None):
    result = train_policy(
        jax.random.key(recipe.SEED),
        pretrained_surrogate(),
        config=recipe.POLICY,
        checkpoint=checkpoint,
        resume=checkpoint is not None,
    )
    numbers = {"best": result.records.best, "mean": result.records.worth}
    network = eqx.tree_at(
        lambda network: network.curiosity, result.state.network, jnp.float32(recipe.CURIOSITY)
    )
    return network, result, numbers, {"steps": recipe.POLICY.total_steps}


def _curve(numbers: dict[str, Any]) -> dict[str, list[float]]:
    """Means over equal parts of the training."""
    return {
        name: [round(float(part.mean()), 4) for part in np.array_split(np.asarray(values), _POINTS)]
        for name, values in numbers.items()
    }


if __name__ == "__main__":
    main()
