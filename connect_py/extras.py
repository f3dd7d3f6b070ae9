"""The optional parts of the distribution, and the command that installs one."""

from __future__ import annotations

import shlex
import sys

DISTRIBUTION = "connect-py-worker"


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra next to this very worker.

    It names this interpreter. The distribution is installed there already, so pip asks an index for the extra's packages only: no index
    has the distribution itself. The `pip` of another interpreter would look for it, and fail.
    """
    return f"{shlex.quote(sys.executable)} -m pip install '{DISTRIBUTION}[{extra}]'"
