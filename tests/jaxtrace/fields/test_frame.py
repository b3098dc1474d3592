from __future__ import annotations

import numpy as np
import pytest

import jaxtrace as jt
from jaxtrace.fields import FieldError
from jaxtrace.fields._frame import DEGREE, browser_time, dates, merged, seconds_between

EARTH = jt.Frame(axes=("longitude", "latitude", "metres"), units="coordinates/s")
CALENDAR = "seconds since 2000-02-28, calendar {}"


def test_metres_a_unit_of_each_coordinate():
    found = EARTH.metres(np.array([[0.0, 10.0], [60.0, 0.0], [5.0, 5.0]]))
    assert np.allclose(found, [[DEGREE / 2, DEGREE], [DEGREE, DEGREE], [1.0, 1.0]])
    section = jt.Frame(axes=("longitude", "metres"), parallel=60.0)
    assert np.allclose(section.metres(np.zeros((2, 1))), [[DEGREE / 2], [1.0]])
    with pytest.raises(FieldError, match="parallel"):
        jt.Frame(axes=("longitude", "metres")).metres(np.zeros((2, 1)))
    assert jt.Frame().flat
    assert (jt.Frame().metres(np.zeros((2, 3))) == 1).all()


def test_axes_that_do_not_exist_and_axes_that_differ_are_named():
    with pytest.raises(FieldError, match=r"axes=\('east', 'north'\)"):
        jt.Frame(axes=("east", "north"))
    with pytest.raises(FieldError, match="different axes"):
        merged([EARTH, jt.Frame(axes=("metres",) * 3)], "fields")
    assert merged([jt.Frame(), EARTH], "fields").axes == EARTH.axes


def test_epochs_are_dates_and_no_part_of_a_program():
    assert jt.Frame(epoch="2000-01-01").epoch == "seconds since 2000-01-01, calendar standard"
    assert hash(jt.Frame(epoch="2000-01-01")) == hash(jt.Frame())
    assert seconds_between(CALENDAR.format("noleap"), CALENDAR.format("365_day")) == 0
    later = "seconds since 2000-03-01, calendar {}"
    for calendar, days in (("standard", 2), ("noleap", 1), ("360_day", 3)):
        apart = seconds_between(CALENDAR.format(calendar), later.format(calendar))
        assert apart == days * 86400, calendar
    with pytest.raises(FieldError, match="different calendars"):
        seconds_between(CALENDAR.format("standard"), CALENDAR.format("noleap"))


def test_dates_of_times():
    times = np.array([0.0, 86400.0])
    assert dates(times, CALENDAR.format("noleap")) == ["2000-02-28 00:00", "2000-03-01 00:00"]
    assert dates(times / 864, CALENDAR.format("standard"))[1] == "2000-02-28 00:01:40"
    assert dates(times, "") is None
    assert browser_time(86400.0, "seconds since 1970-01-01") == 86_400_000.0
    assert browser_time(0.0, CALENDAR.format("noleap")) is None
