"""How a surrogate is trained, as one frozen value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import optax

from acbo._errors import OptionError
from acbo.surrogate import SurrogateConfig

_FIELDS = {
    "hidden_dim": "hidden",
    "n_layers": "blocks",
    "layers": "blocks",
    "n_heads": "heads",
    "heads": "heads",
    "moments": "moments",
    "compute_dtype": "compute_dtype",
}


def network_of(sizes: Mapping[str, Any]) -> SurrogateConfig:
    """The network of some sizes; what is wrong with them is told by the names that they have here.

    A size that is left out has its default; moments are half of the hidden ones.
    """
    own = {_FIELDS[name.removeprefix("model_")]: name for name in sizes}
    given = {field: sizes[name] for field, name in own.items()}
    given.setdefault("moments", max(given.get("hidden", SurrogateConfig.hidden) // 2, 1))
    try:
        return SurrogateConfig(**given)
    except (ValueError, TypeError) as error:
        told = re.sub(r"\w+(?==)", lambda field: own.get(field[0], field[0]), str(error))
        raise OptionError(told) from error


@dataclass(frozen=True)
class SurrogateTrainingConfig:
    """Sizes of the network and of its training. Frozen and hashable.

    **Arguments:**

    - `learning_rate`, `weight_decay`, `clip`: of AdamW, and the largest norm of a gradient.
    - `batch_size`: tables that one step sees.
    - `max_epochs`: steps for each difficulty of `optimized_progressive_learning`.
    - `model_hidden_dim`, `model_n_layers`, `model_n_heads`: sizes of the network: the layers are
      even in number, and the heads divide `model_hidden_dim`.
    - `max_parent_size`: the largest set of causes that has a probability.
    - `compute_dtype`: `"float32"` or `"bfloat16"`, the type in which its blocks compute.
    - `samples`: rows of a table.
    - `interventional`: the share of rows in which a variable is set.

    ```python
    from acbo.training import SurrogateTrainingConfig

    config = SurrogateTrainingConfig(learning_rate=3e-4, batch_size=8)
    assert hash(config) == hash(SurrogateTrainingConfig(learning_rate=3e-4, batch_size=8))
    ```
    """

    learning_rate: float = 1e-3
    batch_size: int = 32
    max_epochs: int = 100
    model_hidden_dim: int = 64
    model_n_layers: int = 4
    max_parent_size: int = 3
    weight_decay: float = 1e-4
    model_n_heads: int = 4
    compute_dtype: str = "float32"
    clip: float = 1.0
    samples: int = 100
    interventional: float = 0.5

    def __post_init__(self):
        for name, least in (
            ("batch_size", 1),
            ("max_epochs", 1),
            ("model_hidden_dim", 1),
            ("model_n_layers", 1),
            ("model_n_heads", 1),
            ("max_parent_size", 0),
            ("samples", 2),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise OptionError(f"{name} is {value!r}; give a whole number, {least} or more")
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise OptionError(f"{name} is {value}; give a number above 0")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise OptionError(f"weight_decay is {self.weight_decay}; give 0 or more")
        if not 0 <= self.interventional <= 1:
            raise OptionError(f"interventional is {self.interventional}; give a share, 0 to 1")
        network_of(
            {
                "model_hidden_dim": self.model_hidden_dim,
                "model_n_layers": self.model_n_layers,
                "model_n_heads": self.model_n_heads,
                "compute_dtype": self.compute_dtype,
            }
        )

    @property
    def model_kwargs(self) -> dict[str, int | str]:
        """The sizes, as `create_parent_set_model` takes them."""
        return {
            "hidden_dim": self.model_hidden_dim,
            "layers": self.model_n_layers,
            "heads": self.model_n_heads,
            "compute_dtype": self.compute_dtype,
        }

    def optimizer(self) -> optax.GradientTransformation:
        """AdamW after clipping."""
        return optax.chain(
            optax.clip_by_global_norm(self.clip),
            optax.adamw(self.learning_rate, weight_decay=self.weight_decay),
        )
