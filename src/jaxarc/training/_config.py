"""How to train: the numbers of proximal policy optimisation."""

from __future__ import annotations

import optax

from jaxarc.envs._options import ConfigError, check_number, check_range, config_class


@config_class
class PPOConfig:
    """Sizes and rates. The defaults are small: an update takes well under a second on two cores.

    **Arguments:**

    - `worlds`: how many play at once, over all devices.
    - `steps`: how many steps each of them takes before an update.
    - `updates`: how often the policy plays and learns.
    - `epochs`, `minibatches`: how often what was played is gone through, and in how many parts.
      A part holds every `minibatches`-th world, whole, so that it is the same on any number of
      devices.
    - `learning_rate`, `max_norm`: of Adam, and the largest norm of a gradient.
    - `discount`, `decay`: of rewards to come, and of the advantage's trace (lambda).
    - `clip_ratio`: how far an action's probability may move in one update and still count.
    - `value_weight`, `entropy_weight`: of the value's error and of the entropy in the loss.
    - `width`, `layers`: of the network.
    """

    worlds: int = 256
    steps: int = 16
    updates: int = 100
    epochs: int = 2
    minibatches: int = 4
    learning_rate: float | int = 1e-3
    max_norm: float | int = 0.5
    discount: float | int = 0.97
    decay: float | int = 0.95
    clip_ratio: float | int = 0.2
    value_weight: float | int = 0.5
    entropy_weight: float | int = 0.01
    width: int = 32
    layers: int = 2

    def __post_init__(self):
        for name in ("worlds", "steps", "updates", "epochs", "minibatches", "width", "layers"):
            check_range(self, name, 1)
        for name in ("learning_rate", "max_norm"):
            check_number(self, name, low=0.0, open=True)
        for name in ("discount", "decay"):
            check_number(self, name, low=0.0, high=1.0)
        check_number(self, "clip_ratio", low=0.0, high=1.0, open=True)
        for name in ("value_weight", "entropy_weight"):
            check_number(self, name, low=0.0)
        self.check_devices(1)

    def check_devices(self, devices: int) -> None:
        """Refuse a number of worlds that devices and minibatches do not share evenly."""
        parts = devices * self.minibatches
        if self.worlds % parts:
            below = self.worlds // parts * parts
            near = f"{below} or {below + parts}" if below else f"{parts}"
            reason = (
                f"{self.worlds}: {devices} device(s) with minibatches={self.minibatches} "
                f"each need a multiple of {parts}; the nearest: {near}"
            )
            error = ConfigError(f"worlds={reason}")
            error.option, error.reason = "worlds", reason
            raise error

    def optimiser(self) -> optax.GradientTransformation:
        """Adam behind a clip of the gradient's norm."""
        return optax.chain(
            optax.clip_by_global_norm(self.max_norm), optax.adam(self.learning_rate, eps=1e-5)
        )
