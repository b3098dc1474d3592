"""A seed that JAX would take for another one is refused: it keeps 32 bits of a number."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray

from worldloom.cli import main

COMMANDS = {
    "arc rollout": ("--seed", "--worlds", "1", "--steps", "1"),
    "arc train": ("--seed", "--updates", "1"),
    "acbo optimise": ("--seed", "--problem", "toy"),
    "acbo eval": ("--seed",),
    "acbo train": ("--seed", "--steps", "1"),
    "trace run": ("--key", "flow.nc", "-o", "tracks.nc", "--n-timesteps", "2", "--dt", "0.1"),
}


def test_what_jax_does_with_a_large_seed():
    """If this fails JAX keeps more bits, and more seeds can be allowed."""
    keys = [jax.random.key_data(jax.random.key(seed)) for seed in (0, 2**32)]
    assert np.array_equal(*keys)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("seed", [-1, 2**32, 2**40 + 7])
def test_a_seed_out_of_range_is_refused(command, seed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    axes = {name: (name, np.linspace(0, 1, 4), {"units": "m"}) for name in "xy"}
    data = {name: (("x", "y"), np.zeros((4, 4)), {"units": "m/s"}) for name in "uv"}
    xarray.Dataset(data, axes).to_netcdf("flow.nc")
    flag, *rest = COMMANDS[command]
    assert main([*command.split(), *rest, f"{flag}={seed}"]) == 2
    assert f"seed {seed}: expected a whole number from 0 to 2**32 - 1" in capsys.readouterr().err
