"""Match regular expressions of users in a process of their own, for the worker.

Python's `re` backtracks and holds the interpreter's lock while it does: `(a+)+$` against forty characters would stop every thread of the
worker for days, REST API and health included. A task may match what its own connector asks for; the worker serves all of them, so it has
a child do it, which the kernel ends after a second of CPU. Answers are kept, so that a stored configuration asks once.
"""

from __future__ import annotations

import functools
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterable

from connect_py.data.java_regex import compile_java_regex
from connect_py.errors import ConfigError

log = logging.getLogger(__name__)

#: A match of property or topic names takes microseconds.
CPU_SECONDS = 1

#: A child that has not ended by then waits for a processor.
_WALL_SECONDS = 20.0

#: Configurations of one worker and some validations.
_ANSWERS = 1024

_SCRIPT = """\
import json, re, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
pattern, flags, texts = json.load(sys.stdin)
matches = re.compile(pattern, flags).fullmatch
json.dump([text for text in texts if matches(text)], sys.stdout)
"""


class SlowRegexError(ConfigError):
    """A regular expression did not come to an end."""


def matching(pattern: str, texts: Iterable[str], flags: int = re.ASCII) -> frozenset[str]:
    """Return the texts that a Java regex matches in full.

    Raises:
        ConfigError: the regex is malformed.
        SlowRegexError: it took more than `CPU_SECONDS`.
    """
    compiled = compile_java_regex(pattern, flags)
    found = _matching(compiled.pattern, compiled.flags, tuple(sorted(texts)))
    if found is None:
        raise SlowRegexError(
            f"the regular expression takes more than {CPU_SECONDS} s to match a name. Write it without repetitions inside of repetitions."
        )
    return found


@functools.lru_cache(_ANSWERS)
def _matching(pattern: str, flags: int, texts: tuple[str, ...]) -> frozenset[str] | None:
    command = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(CPU_SECONDS)]
    request = json.dumps([pattern, flags, texts])
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=_WALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        log.debug("A regular expression was given up (exit code %d): %s", done.returncode, done.stderr[-200:])
        return None
    return frozenset(json.loads(done.stdout))
