"""Ports are given to one server each, also between processes that ask at the same time."""

from __future__ import annotations

import subprocess
import sys

from connect_py.app.services.process import Ports, free_port
from tests.paths import ROOT


def test_a_port_that_somebody_was_given_is_nobody_elses() -> None:
    given, spare = free_port(), Ports(range(19000, 20000), most=0).choose()
    script = f"from connect_py.app.services.process import Ports; print(Ports([{given}] * 20 + [{spare}]).choose())"
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(found.stdout) == spare


def test_a_reservation_ends_after_others() -> None:
    first_of_all = Ports(range(19000, 19500), most=0).choose()
    ports = Ports([first_of_all, Ports(range(19500, 20000), most=0).choose()], most=1)
    first, second, third = (ports.choose() for _ in range(3))
    assert first == third != second
