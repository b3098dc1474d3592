"""The harness finds what is wrong with a seed."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from seeds import harness
from seeds.harness import Defect, Seed

TEXT = """# A seed

```python
def double(x):
    return 2 * x

y = double(start)
```

```bash
not python
```

```python
z = missing(y)
```

```python
try:
    1 / 0
except ZeroDivisionError as error:
    print(f"Batch 3: Failed ({error})")
```

```python
after = z + 1
```
"""
REPAIR = Defect("`missing` is not defined", [("missing(y)", "y + 1")], NameError, "missing")


@pytest.fixture(autouse=True)
def _a_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "900_abc.txt").write_text(TEXT)
    monkeypatch.setattr(harness, "FOLDER", tmp_path)
    package = types.ModuleType("a_package")
    package.__all__ = ["double"]
    package.double = lambda x: 20 * x
    monkeypatch.setitem(sys.modules, "a_package", package)


def seed(**options) -> Seed:
    return Seed("900", package="a_package", prelude="start = 1", **options)


def test_blocks_share_a_namespace_and_a_defect_is_replaced_by_its_twin():
    one = seed(defects={2: REPAIR}, smaller={1: [("start", "start + 1")]})
    assert one.numbers == [1, 2, 3, 4]
    assert [block.line for block in one.blocks.values()] == [4, 15, 19, 26]
    assert one.run(2)["z"] == 5
    one.check_defect(2)


def test_a_later_block_runs_alone():
    assert seed(defects={2: REPAIR}).run(4)["after"] == 4


def test_calls_go_to_the_package():
    assert seed(defects={2: REPAIR}).run(2, ours=True)["z"] == 21


def test_a_block_that_fails_fails_its_own_test():
    one = seed()
    with pytest.raises(NameError, match="z"):
        one.run(4)
    one.run(1)
    with pytest.raises(NameError, match="missing") as caught:
        one.run(2)
    place = caught.traceback[-1]
    assert place.lineno + 1 == 15


def test_a_complaint_is_a_failure():
    with pytest.raises(AssertionError, match="Batch 3: Failed"):
        seed(defects={2: REPAIR}).run(3)


@pytest.mark.parametrize(
    ("defect", "match"),
    [
        (Defect("none", [("z", "z")]), "name 'missing'"),
        (Defect("other", [("z", "z")], ValueError), "missing"),
        (Defect("other", [("z", "z")], NameError, "nothing like it"), "Regex"),
    ],
)
def test_a_defect_must_be_as_it_is_told(defect: Defect, match: str):
    with pytest.raises((AssertionError, NameError), match=match):
        seed(defects={2: defect}).check_defect(2)


def test_a_block_that_runs_is_no_defect():
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        seed(defects={1: REPAIR}).check_defect(1)


def test_a_replacement_must_be_of_something():
    with pytest.raises(AssertionError, match="does not hold 'w'"):
        seed(smaller={1: [("w", "v")]}).run(1)
