"""Where this repository and its recorded answers are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What the reference and other implementations answered, for unit tests.
GOLDEN = ROOT / "tests" / "unit" / "golden"
