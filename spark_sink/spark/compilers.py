"""The compilers of Spark's JVM, where the driver does the work itself: what they compile, and how much they give way to its batches.

HotSpot has two. The first (C1) compiles quickly what runs some hundred times; the second (C2) takes far longer, for code that is two to
three times as fast. That pays for what runs for every row. A statement's plan runs some thousands of methods of Catalyst, of the parser
and of what generates code a few dozen times each: often enough to be compiled by the second compiler for minutes, and too seldom to win
that time back. What runs for every row waited in the same queue. Small batches, which are mostly plans, take a little longer and less CPU
(`docs/evidence/benchmarks.md`).
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_sink.spark.local import java_array

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What Linux calls the threads of the second compiler, in fifteen characters, and how much they give way to others (`setpriority`). In its
#: first minutes a JVM compiles with half of the time that it gets; on two busy cores its batches waited for that.
_SECOND_COMPILER, _COMPILER_NICENESS = "C2 CompilerThre", 10

#: Packages, and beginnings of classes, of what plans, commits and schedules, and of what generates code: none of it runs for each row.
FIRST_COMPILER_ONLY = (
    *(f"org/apache/spark/sql/catalyst/{package}/" for package in ("analysis", "catalog", "optimizer", "parser", "planning")),
    *(f"org/apache/spark/sql/catalyst/{package}/" for package in ("plans", "rules", "trees")),
    *(f"org/apache/spark/sql/catalyst/expressions/{name}" for name in ("Alias", "Attribute", "Bind", "Canonical", "Equivalent", "ExprId")),
    *(f"org/apache/spark/sql/catalyst/expressions/{name}" for name in ("Expression", "Named", "Subquery")),
    *(f"org/apache/spark/sql/catalyst/expressions/codegen/{name}" for name in ("Block", "Code", "Expr")),
    *(f"org/apache/spark/sql/execution/{name}" for name in ("adaptive/", "ui/", "QueryExecution", "SparkPlan")),
    *(f"org/apache/spark/sql/delta/{name}/" for name in ("actions", "catalog", "commands", "constraints", "hooks", "schema", "sources")),
    *(f"org/apache/spark/sql/delta/{name}" for name in ("stats/", "util/", "Checkpoint", "Conflict", "DeltaLog", "Optimistic", "Snapshot")),
    *(f"org/apache/spark/{name}" for name in ("scheduler/", "status/", "ui/", "util/ClosureCleaner", "util/kvstore/")),
    *(f"org/apache/iceberg/{name}/" for name in ("avro", "shaded/com/fasterxml", "shaded/org/apache/avro")),
    *("org/antlr/", "org/apache/xbean/", "org/codehaus/", "org/json4s/"),
    "java/io/Object",
)

#: HotSpot's commands, as a bean (`com.sun.management.DiagnosticCommandMBean`). An option of the JVM would do the same, and print a line.
_COMMANDS, _ADD = "com.sun.management:type=DiagnosticCommand", "compilerDirectivesAdd"


def let_compiler_give_way(pid: int) -> None:
    """Have a JVM's second compiler use what time the batches leave. Threads that it starts later do the same, as all of Linux's do."""
    with contextlib.suppress(OSError):  # of a process that has just ended, or where there is no such directory
        for thread in Path(f"/proc/{pid}/task").iterdir():
            if (thread / "comm").read_text().rstrip("\n") == _SECOND_COMPILER:
                os.setpriority(os.PRIO_PROCESS, int(thread.name), _COMPILER_NICENESS)


def spare_second_compiler(session: SparkSession, directory: Path) -> None:
    """Have what plans statements compiled by the first compiler only. A JVM without HotSpot's directives (JEP 165) is left as it is.

    Args:
        directory: where a file may be written, which is read at once.
    """
    from py4j.protocol import Py4JError

    file = directory / "compilers.json"
    file.write_text(json.dumps([{"match": [f"{begin}*.*" for begin in FIRST_COMPILER_ONLY], "c2": {"Exclude": True}}]))
    with contextlib.suppress(Py4JError):
        _add_directives(session, file)
    file.unlink()


def _add_directives(session: SparkSession, file: Path) -> None:
    """Have HotSpot read a file of directives. Raises Py4JError where it has no such command."""
    jvm: Any = session._jvm
    java = jvm.java.lang
    texts = "[Ljava.lang.String;"
    given = java_array(session, java.Object, java_array(session, java.String, str(file)))
    # by the interface's method, since py4j may not call the server's own class
    of_invoke = (java.Class.forName(each) for each in ("javax.management.ObjectName", "java.lang.String", "[Ljava.lang.Object;", texts))
    invoke = java.Class.forName("javax.management.MBeanServer").getMethod("invoke", java_array(session, java.Class, *of_invoke))
    server, bean = java.management.ManagementFactory.getPlatformMBeanServer(), jvm.javax.management.ObjectName(_COMMANDS)
    invoke.invoke(server, java_array(session, java.Object, bean, _ADD, given, java_array(session, java.String, texts)))
