"""How the networks of the package are trained. `python -m acbo.pretrained` does it."""

from __future__ import annotations

from acbo.policy import GRPOConfig
from acbo.scm import Family
from acbo.surrogate import Curriculum, Lesson, SurrogateConfig, TrainingConfig

_EDGES = (0.5, 1.6)
_REACH = (0.3, 1.0)

SEED = 20261116
SURROGATE = SurrogateConfig(hidden=64, blocks=4, heads=4, moments=32, trained_for=20)


def _families(*weights: float):
    """The families of both stages, with the weights of one of them."""
    families = (
        Family(edges_per_variable=_EDGES),
        Family(edges_per_variable=_EDGES, mechanism="fourier"),
        Family(edges_per_variable=_EDGES, noise="laplace", reach=_REACH, targets=2),
        Family(edges_per_variable=_EDGES, mechanism="polynomial"),
        Family(
            graph="scale_free", edges_per_variable=(1.0, 2.0), mechanism="fourier", noise="uniform"
        ),
        Family(graph="scale_free", edges_per_variable=(1.0, 2.0), reach=_REACH),
    )
    return tuple(zip(families, weights, strict=True))


# First everything; then mostly what is hardest to learn, small tables without interventions, from
# which only the last digits of a likelihood tell directions.
STAGES = (
    (
        Curriculum(
            lessons=(
                Lesson(variables=(2, 5), rows=(16, 128), batch=64, weight=4.0),
                Lesson(variables=(2, 5), rows=(128, 1024), batch=16, weight=1.0),
                Lesson(variables=(5, 10), rows=(32, 128), batch=32, weight=2.0),
                Lesson(variables=(5, 10), rows=(128, 1024), batch=8, weight=1.0),
                Lesson(variables=(10, 20), rows=(64, 256), batch=8, weight=1.0),
                Lesson(variables=(10, 20), rows=(256, 1024), batch=4, weight=1.0),
            ),
            families=_families(0.35, 0.30, 0.10, 0.10, 0.08, 0.07),
        ),
        TrainingConfig(steps=7_000, learning_rate=1e-3),
    ),
    (
        Curriculum(
            lessons=(
                Lesson(variables=(3, 5), rows=(48, 192), batch=96, weight=6.0),
                Lesson(variables=(2, 5), rows=(16, 1024), batch=16, weight=1.0),
                Lesson(variables=(5, 10), rows=(32, 1024), batch=12, weight=1.5),
                Lesson(variables=(10, 20), rows=(64, 1024), batch=4, weight=1.5),
            ),
            families=_families(0.50, 0.26, 0.08, 0.08, 0.04, 0.04),
            observational=0.6,
        ),
        TrainingConfig(steps=6_000, learning_rate=6e-4),
    ),
)

CALIBRATION = Lesson(variables=(2, 5), rows=(32, 128), batch=128)
# Training draws its actions and so explores by chance. The policy in use takes the likeliest action
# and has to be more curious: more than this for a better best, less for a better mean.
CURIOSITY = 3.6
POLICY = GRPOConfig(
    problems=32,
    group_size=8,
    total_steps=240,
    learning_rate=5e-4,
    improvement_coeff=3.0,
    variables=(4, 5),
)
