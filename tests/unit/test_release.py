"""`make release` knows what the project is made of; the command itself builds and installs, and takes minutes."""

from __future__ import annotations

import tomllib

from tests.paths import ROOT
from tests.release import CHECKS, OF_A_CHECKOUT


def test_each_extra_is_installed_alone_or_belongs_to_a_checkout() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) == CHECKS.keys() - {"none"} | OF_A_CHECKOUT
