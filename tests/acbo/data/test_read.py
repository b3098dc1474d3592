from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from acbo._errors import AcboWarning, DataError
from acbo.data import read_data

VALUES = np.array([[0.5, 1.0, -2.0], [1.5, 0.0, 3.0], [2.5, 4.0, 1.0], [0.25, 7.0, 8.0]])
MASK = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1]], bool)
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(VALUES, columns=NAMES)
TARGETS = ["", "a", None, "a;c"]


def in_all_forms(folder: Path) -> dict[str, Any]:
    FRAME.to_csv(folder / "data.csv", index=False)
    FRAME.to_csv(folder / "data.tsv", index=False, sep="\t")
    FRAME.to_parquet(folder / "data.parquet")
    return {
        "frame": FRAME,
        "csv": folder / "data.csv",
        "text path": str(folder / "data.csv"),
        "tsv": folder / "data.tsv",
        "parquet": folder / "data.parquet",
    }


def test_every_form_of_data_is_the_same(tmp_path: Path):
    for form, source in in_all_forms(tmp_path).items():
        data = read_data(source)
        assert data.names == ("a", "b", "c"), form
        assert data.values.dtype == np.float32
        np.testing.assert_array_equal(data.values, VALUES.astype(np.float32), err_msg=form)
        assert not data.intervened.any()
    assert read_data(VALUES).names == ("x0", "x1", "x2")
    assert read_data(VALUES.tolist(), names=NAMES).names == ("a", "b", "c")


def test_every_form_of_interventions_is_the_same(tmp_path: Path):
    flags = pd.DataFrame(MASK.astype(int), columns=NAMES)
    flags[["c", "a"]].to_csv(tmp_path / "mask.csv", index=False)
    np.savetxt(tmp_path / "bare.csv", MASK.astype(int), fmt="%d", delimiter=",")
    flags.to_parquet(tmp_path / "mask.parquet")
    for given in (
        MASK,
        MASK.astype(int),
        MASK.tolist(),
        MASK.astype(float),
        flags,
        flags.astype(bool),
        flags[["c", "a"]],
        tmp_path / "mask.csv",
        str(tmp_path / "mask.csv"),
        tmp_path / "bare.csv",
        tmp_path / "mask.parquet",
        TARGETS,
        ["", "a", "", " a ; c"],
        np.array(["", "a", "", "a;c"]),
    ):
        np.testing.assert_array_equal(read_data(FRAME, given).intervened, MASK)


def test_a_column_may_name_the_interventions(tmp_path: Path):
    frame = FRAME.assign(target=TARGETS)
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    for source in (frame, tmp_path / "data.csv", tmp_path / "data.parquet"):
        data = read_data(source, "target")
        assert data.names == ("a", "b", "c")
        np.testing.assert_array_equal(data.intervened, MASK)


def test_a_file_without_names(tmp_path: Path):
    np.savetxt(tmp_path / "bare.csv", VALUES, delimiter=",")
    data = read_data(tmp_path / "bare.csv")
    assert data.names == ("x0", "x1", "x2")
    assert data.values.shape == (4, 3)
    assert read_data(tmp_path / "bare.csv", names=NAMES).names == ("a", "b", "c")


def test_the_record():
    data = read_data(FRAME, MASK)
    assert repr(data) == "Dataset(4 samples of 3 variables, 2 samples under intervention)"
    assert data.index("b") == 1
    with pytest.raises(DataError, match="no variable is called 'z'; there are a, b, c"):
        data.index("z")
    with pytest.raises(ValueError, match="read-only"):
        data.values[0, 0] = 1
    standard = data.standardised()
    np.testing.assert_allclose(standard.values.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(standard.values.std(0), 1, rtol=1e-6)
    assert (standard.intervened == MASK).all()


def test_the_arrays_of_the_caller_stay_open():
    values, mask = VALUES.astype(np.float32), MASK.copy()
    read_data(values, mask)
    values[0, 0], mask[0, 0] = 9, True


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    frame = FRAME.astype(object)
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (changed("b", 2, np.nan), r"column 'b' has 1 values .* \(nan\) in row 2 "),
        (changed("b", 2, None), r"column 'b' has 1 values .* in row 2 "),
        (changed("c", 3, np.inf), r"column 'c' .* \(inf\) in row 3 "),
        (changed("a", 1, "high"), r"column 'a' holds 'high' in row 1 .*not a number"),
        (FRAME.assign(b=5.0), r"column 'b' is 5 in every row"),
        (FRAME.assign(b=[1e9, 1e9 + 1, 1e9, 1e9]), r"column 'b' varies by .*too little"),
        (FRAME.assign(b=[1e39, 0.0, 1.0, 2.0]), r"column 'b' .*too large for float32"),
        (FRAME.assign(b=pd.Timestamp("2020-01-01")), r"column 'b' holds datetime64"),
        (FRAME.set_axis(["a", "b", "a"], axis=1), r"more than one column called 'a'"),
        (FRAME[["a"]], r"one variable, 'a'; a causal graph needs at least two"),
        (VALUES[:, :1], r"one variable, 'x0'"),
        (FRAME[:0], r"no rows"),
        (np.zeros((3, 0)), r"no columns"),
        (np.zeros(3), r"source has the shape \(3,\)"),
        (Path("nowhere.csv"), r"'nowhere.csv': there is no such file"),
    ],
)
def test_data_that_is_refused(source: Any, message: str):
    with pytest.raises(DataError, match=message):
        read_data(source)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "which is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n3\n", "line 3 has 1 values, the first has 2"),
        ("a,b\n1,2\n3,\n", r"column 'b' has 1 values .* in row 1 "),
        ("a,b\n1,2\n3,x\n", r"column 'b' holds 'x' in row 1 "),
        ("a,a\n1,2\n3,4\n", "more than one column called 'a'"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: str, message: str):
    (tmp_path / "data.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "data.csv")


def test_files_of_another_kind_are_refused(tmp_path: Path):
    (tmp_path / "data.xlsx").write_text("")
    with pytest.raises(DataError, match=r"'data.xlsx'; files end in \.csv"):
        read_data(tmp_path / "data.xlsx")


@pytest.mark.parametrize(
    ("interventions", "message"),
    [
        (MASK[:3], r"interventions has the shape \(3, 3\), source has \(4, 3\)"),
        (MASK[:, 0], r"interventions has the shape \(4,\)"),
        (2 * MASK, r"interventions holds 2 for 'a' in row 1 .*value that was set belongs"),
        (np.where(MASK, np.nan, 0), r"interventions holds nan for 'a' in row 1"),
        (["a", "b"], r"interventions has 2 entries, source has 4 rows"),
        (["", "z", "", ""], r"interventions names 'z' in row 1 .*variables are a, b, c"),
        (pd.DataFrame({"z": [0, 0, 0, 1]}), r"column 'z', source has none"),
        (pd.DataFrame({"a": [0, 1]}), r"interventions has 2 rows, source has 4"),
        ("target", r"'target', which is neither a column of source nor a file"),
        ("nowhere.csv", r"interventions is 'nowhere.csv': there is no such file"),
        (MASK.astype(complex), r"interventions holds complex128"),
    ],
)
def test_interventions_that_are_refused(interventions: Any, message: str):
    with pytest.raises(DataError, match=message):
        read_data(FRAME, interventions)


def test_names_that_are_refused():
    with pytest.raises(DataError, match="names of its own"):
        read_data(FRAME, names=NAMES)
    with pytest.raises(DataError, match="names has 2 entries for 3 columns"):
        read_data(VALUES, names=["a", "b"])
    with pytest.raises(DataError, match="more than one column called 'target'"):
        read_data(pd.DataFrame([["a", "a"]], columns=["target", "target"]), "target")


def test_what_is_accepted_with_a_warning():
    with pytest.warns(AcboWarning, match="2 samples of 3 variables"):
        read_data(VALUES[:2])
    always = MASK.copy()
    always[:, 1] = True
    with pytest.warns(AcboWarning, match="column 'x1' was set from outside in every row"):
        assert read_data(VALUES, always).intervened[:, 1].all()


def test_arrays_and_csv_files_need_no_extra(tmp_path: Path):
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pandas', 'pyarrow', 'pgmpy']))\n"
        "from acbo.data import read_data, published_network\n"
        "assert read_data('data.csv', ['a', '', '', 'b']).intervened.sum() == 2\n"
        "assert read_data([[1, 2], [2, 1]]).values.shape == (2, 2)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, cwd=tmp_path)
