"""The flow cytometry data of Sachs et al. (2005), where a package on this machine has it."""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from pathlib import Path

import numpy as np

from acbo._errors import DataError
from acbo.data._dataset import Dataset, make

PLACE = "cdt/data/resources/cyto_full_data.csv"
NAMES = {
    "praf": "Raf",
    "pmek": "Mek",
    "plcg": "Plcg",
    "PIP2": "PIP2",
    "PIP3": "PIP3",
    "p44/42": "Erk",
    "pakts473": "Akt",
    "PKA": "PKA",
    "PKC": "PKC",
    "P38": "P38",
    "pjnk": "Jnk",
}

# The file has the nine experiments one after the other and no column that says so. Their sizes are
# those commonly reported; the levels jump at seven of the eight borders, 5 rows after the first.
EXPERIMENTS = (
    ("anti-CD3/CD28", 853, None),
    ("anti-CD3/CD28 + ICAM-2", 902, None),
    ("+ Akt inhibitor", 911, "Akt"),
    ("+ G06976", 723, "PKC"),
    ("+ psitectorigenin", 810, "PIP2"),
    ("+ U0126", 799, "Mek"),
    ("+ LY294002", 848, "PIP3"),
    ("PMA", 913, "PKC"),
    ("beta-2-cAMP", 707, "PKA"),
)
INHIBITIONS = 7


def sachs_data(source: str | Path | None = None, *, activations: bool = False) -> Dataset:
    """Protein levels in single human T cells under perturbation: 11 variables, 5,846 samples.

    The real data is in the wheel of the package `cdt` 0.6.0 (Causal Discovery Toolbox, Apache 2.0)
    and in no other that we know. We do not ship it. Names are those of
    `published_network("sachs")`. Values are as measured; take their logarithm.

    **Arguments:**

    - `source`: the `cdt` wheel (`pip download cdt==0.6.0 --no-deps`), or the file
      `cyto_full_data.csv` in it. `None` looks for an installed `cdt`.
    - `activations`: also the two experiments (1,620 samples) in which PKC or PKA was activated.
      They lack the stimulation that all the others have, so more than one variable differs.

    1,755 samples are observational. In the others one protein was inhibited: Akt, PKC, PIP2, Mek
    or, by LY294002, PIP3. An inhibitor blocks what a protein does and leaves its measured level to
    itself, so a mask that calls it intervened on is the usual reading, not an exact one.

    <!-- not run: needs a wheel that is not installed -->
    ```python
    from acbo.data import sachs_data

    data = sachs_data("cdt-0.6.0-py3-none-any.whl")
    ```
    """
    text = _text(source)
    rows = list(csv.reader(io.StringIO(text)))
    total = sum(size for _, size, _ in EXPERIMENTS)
    if tuple(rows[0]) != tuple(NAMES) or len(rows) - 1 != total:
        raise DataError(
            f"source has {len(rows) - 1} rows of {', '.join(rows[0][:3])}, ...; the file in cdt "
            f"0.6.0 has {total} rows of {', '.join(list(NAMES)[:3])}, ..."
        )
    names = tuple(NAMES.values())
    kept = EXPERIMENTS if activations else EXPERIMENTS[:INHIBITIONS]
    targets = [target for _, size, target in kept for _ in range(size)]
    values = np.array(rows[1 : 1 + len(targets)], np.float64)
    mask = np.array([[name == target for name in names] for target in targets])
    return make(names, values, mask)


def _text(source: str | Path | None) -> str:
    if source is None:
        spec = importlib.util.find_spec("cdt")
        if spec is None or spec.origin is None:
            raise DataError(
                "the data is in the package cdt, which is not installed. Get its wheel with "
                "`pip download cdt==0.6.0 --no-deps`, and give its path as `source`"
            )
        return (Path(spec.origin).parents[1] / PLACE).read_text(encoding="utf-8")
    path = Path(source)
    if not path.is_file():
        raise DataError(f"source is {str(path)!r}: there is no such file")
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            if PLACE not in wheel.namelist():
                raise DataError(f"source is {path.name!r}, which has no {PLACE}")
            return wheel.read(PLACE).decode("utf-8")
    return path.read_text(encoding="utf-8")
