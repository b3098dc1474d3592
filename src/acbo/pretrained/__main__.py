"""Train the networks of the package anew.

`python -m acbo.pretrained surrogate` takes about 40 minutes on two cores, `policy` about six.
Both can be stopped and go on from their checkpoint.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from acbo.policy import train_policy
from acbo.pretrained import _recipe as recipe
from acbo.pretrained._load import pretrained_surrogate
from acbo.surrogate import calibrated, train_surrogate
from worldloom import store

_POINTS = 40


def main() -> None:
    """Train one network; write it and its learning curve."""
    parser = argparse.ArgumentParser(prog="python -m acbo.pretrained", description=__doc__)
    parser.add_argument("network", choices=("surrogate", "policy"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="where to write")
    parser.add_argument("--checkpoint", type=Path, help="a folder; a stopped run goes on from it")
    told = parser.parse_args()
    resume = told.checkpoint is not None and told.checkpoint.exists()
    train = _surrogate if told.network == "surrogate" else _policy
    network, result, numbers, facts = train(told.checkpoint, resume)
    facts |= {"seed": recipe.SEED, "curve": _curve(numbers)}
    store.save(told.out / f"{told.network}.loom", eqx.filter(network, eqx.is_array), level=19)
    text = json.dumps(facts, indent=1) + "\n"
    (told.out / f"{told.network}.json").write_text(text, encoding="utf-8")
    print(result)


def _surrogate(checkpoint: Path | None, resume: bool):
    key = jax.random.key(recipe.SEED)
    result = train_surrogate(
        key,
        recipe.CURRICULUM,
        surrogate=recipe.SURROGATE,
        config=recipe.TRAINING,
        checkpoint=checkpoint,
        resume=resume,
    )
    held_out = jax.vmap(lambda key: recipe.CURRICULUM.studies(key, recipe.CALIBRATION))
    graphs, samples = jax.jit(held_out)(jax.random.split(jax.random.fold_in(key, 1), 24))
    graphs, samples = jax.tree.map(
        lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (graphs, samples)
    )
    network, temperature = eqx.filter_jit(calibrated)(result.state.average, graphs, samples)
    facts = {"steps": recipe.TRAINING.steps, "temperature": float(temperature)}
    numbers = {"edge_loss": result.records.edge_loss, "set_loss": result.records.parent_set_loss}
    return network, result, numbers, facts


def _policy(checkpoint: Path | None, resume: bool):
    result = train_policy(
        jax.random.key(recipe.SEED),
        pretrained_surrogate(),
        config=recipe.POLICY,
        checkpoint=checkpoint,
        resume=resume,
    )
    numbers = {"best": result.records.best, "mean": result.records.worth}
    return result.state.network, result, numbers, {"steps": recipe.POLICY.total_steps}


def _curve(numbers: dict[str, jax.Array]) -> dict[str, list[float]]:
    """Means over equal parts of the training."""
    return {
        name: [round(float(part.mean()), 4) for part in np.array_split(np.asarray(values), _POINTS)]
        for name, values in numbers.items()
    }


if __name__ == "__main__":
    main()
