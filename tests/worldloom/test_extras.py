from __future__ import annotations

import math

import pytest

from worldloom._extras import MissingExtraError, import_extra


def test_a_missing_package_names_the_line_that_installs_it():
    with pytest.raises(MissingExtraError, match=r"pip install 'worldloom\[plot\]'") as caught:
        import_extra("no_such_package.inner", extra="plot", purpose="drawing a plot")
    assert "drawing a plot needs the package 'no_such_package'" in str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_an_installed_module_is_returned():
    assert import_extra("math", extra="plot", purpose="counting") is math
