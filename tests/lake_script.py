"""One lakehouse task in a process of its own, because Python has one Spark a process, here or elsewhere. For `test_spark_elsewhere`.

Reads commands from standard input, one a line, and answers each with a line of JSON: ``start``, ``drain``, ``close``, and ``forget``, which
loses the group's offsets.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.fix_spark import LAKES, Lake


def main() -> None:
    order = json.loads(sys.stdin.readline())
    lake: Lake = LAKES[order["format"]](order["bootstrap"], Path(order["warehouse"]), order["tag"])
    task = None
    for line in sys.stdin:
        answer: object = None
        try:
            match line.strip():
                case "start":
                    task = lake.start(order["config"])
                case "drain":
                    assert task is not None
                    answer = lake.drain(task)
                case "rewind":
                    lake.context.rewind()
                case "close":
                    lake.close()
        except Exception as error:  # noqa: BLE001  # the answer
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps({"answer": answer}), flush=True)


if __name__ == "__main__":
    main()
