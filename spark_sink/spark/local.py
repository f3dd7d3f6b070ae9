"""Frames whose rows are held. Spark looks at those that the driver holds while it plans: a filter or a projection of them is no job.

But for `hold` only of a session with a JVM in this process; over Spark Connect the rows are on the server.
"""

from __future__ import annotations

import array
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The plan of a frame whose rows the driver holds.
HELD = "LocalRelation"

#: Between expressions that are handed over together. Those of which one has it itself are handed over one by one.
_SEPARATOR = "\0"

#: Java's class of sessions.
_SESSIONS = "org.apache.spark.sql.classic.SparkSession"

#: pyspark's frames are made of its objects.
_DATASET = "org.apache.spark.sql.classic.Dataset"


def has_java(session: Any) -> bool:
    """Return whether a session is of a JVM of this process, so that Java can be called."""
    return hasattr(session, "_jsparkSession")


def answer_at_once(session: Any) -> None:
    """Have the JVM send long answers without a delay, to this thread and to others that have called the JVM before.

    What is longer than Java's buffer of 8 kB is sent in pieces, the second one when the first has been acknowledged, which Linux does after
    40 ms. py4j has a connection for each thread, and sets nothing at the JVM's end. Where that is not so, answers stay as they are.
    """
    from py4j.protocol import Py4JError

    if not has_java(session):
        return
    with contextlib.suppress(Py4JError, AttributeError):  # the latter where Spark is being stopped
        server = session.sparkContext._gateway.java_gateway_server
        connections = private_field(server.getClass().getSuperclass(), "connections", server)
        for at in reversed(range(connections.size())):  # this thread's is one of the last; others may end meanwhile
            connections.get(at).getSocket().setTcpNoDelay(True)


@contextlib.contextmanager
def having_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have settings in a session for a statement; afterwards it has its own again, so that no other table's statement has them."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


class JavaClass:
    """A class of the JVM, each of whose members is looked up once: py4j asks for it each time that it is used."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        setattr(self, name, found)
        return found

    def __call__(self, *arguments: Any) -> Any:
        return self._made(*arguments)


def java_class(session: Any, name: str) -> Any:
    """Return a class of the JVM, which is looked up once: py4j has each package that pyspark imports tried, in some three hundred jars."""
    view = session._jvm
    found = getattr(view, name)
    if not isinstance(found, JavaClass):
        found = JavaClass(found)
        setattr(view, name, found)
    return found


def java_array(session: Any, of: Any, *items: Any) -> Any:
    """Return an array of Java's.

    Args:
        of: py4j's own object for the class of the items, which `java_class` does not return.
    """
    made = session.sparkContext._gateway.new_array(of, len(items))
    for at, item in enumerate(items):
        made[at] = item
    return made


def scala_object(session: Any, name: str) -> Any:
    """Return an object of Scala's."""
    return getattr(java_class(session, name + "$"), "MODULE$")


def private_field(declared_in: Any, name: str, of: Any) -> Any:
    """Return what an object of Java's has in a private field.

    Args:
        declared_in: the class that has the field.
        of: the object; None where the field is static.

    Raises:
        Py4JError: there is no such field.
    """
    field = declared_in.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


def longs(session: Any, numbers: Any) -> Sequence[int]:
    """Return an array of Java's longs; py4j hands over each of them by a call of its own."""
    buffer = java_class(session, "java.nio.ByteBuffer").allocate(8 * len(numbers))
    buffer.order(java_class(session, "java.nio.ByteOrder").nativeOrder()).asLongBuffer().put(numbers)
    return array.array("q", buffer.array())


def activate(session: Any) -> None:
    """Make a session the active one of this thread, which a thread's first statement does else."""
    java_class(session, _SESSIONS).setActiveSession(session._jsparkSession)


def select(frame: DataFrame, expressions: Iterable[str]) -> DataFrame:
    """Return `frame.selectExpr(*expressions)`; pyspark hands over each expression by a call of its own."""
    texts, made = list(expressions), cast("Any", frame)
    session = made.sparkSession
    if not has_java(session) or any(_SEPARATOR in text for text in texts):
        return frame.selectExpr(*texts)
    separated = java_class(session, "java.util.regex.Pattern").compile(_SEPARATOR).split(_SEPARATOR.join(texts))
    return _of(session, made._jdf.selectExpr(scala_object(session, "scala.collection.immutable.ArraySeq").unsafeWrapArray(separated)))


def collect_locally(frame: DataFrame) -> DataFrame:
    """Return a frame's rows, read now, as a frame that the driver holds. Its columns are numbers, texts, flags and times."""
    session: Any = frame.sparkSession
    read: Any = frame
    return _of(session, session._jsparkSession.createDataFrame(read._jdf.collectAsList(), read._jdf.schema()))


def evaluate(frame: DataFrame) -> DataFrame | None:
    """Return a frame that is made of rows which the driver holds as one that has been evaluated; None when that takes a job.

    What evaluating a row raises is raised here.
    """
    made: Any = frame
    execution = made._jdf.queryExecution()
    if execution.analyzed().nodeName() == HELD:
        return frame
    plan = execution.optimizedPlan()
    return frame_of_plan(frame.sparkSession, plan) if plan.nodeName() == HELD else None


def held_rows(frame: DataFrame) -> Any | None:
    """Return the rows of a frame that the driver holds, as a Seq of Spark's internal ones; None if it does not hold them."""
    made: Any = frame
    plan = made._jdf.queryExecution().analyzed()
    return plan.data() if plan.nodeName() == HELD else None


@dataclass(frozen=True)
class Held:
    """Rows that Spark holds.

    Attributes:
        rows: a frame of them.
        release: has Spark forget them.
    """

    rows: DataFrame
    release: Callable[[], object]


def is_of_this_process(session: Any) -> bool:
    """Return whether what a session's Spark holds is there for as long as this process. An executor that dies takes it along."""
    return has_java(session) and session.sparkContext.master.startswith("local")


def hold(rows: DataFrame, *, at_once: bool = False) -> Held:
    """Have Spark hold rows from their first use on, in memory or in its local files.

    In this process they are held as the bytes that it works with. `persist` makes columns of them, and rows of these at each use, which
    took a fifth of the time of a large merge, but makes again what an executor has lost.

    Args:
        at_once: whether to make them now. In this process, what is observed of them is reported for this use alone.
    """
    if not is_of_this_process(rows.sparkSession):
        kept = rows.persist()
        return Held(kept, kept.unpersist)
    held = rows.localCheckpoint(at_once)
    made: Any = held
    return Held(held, lambda: made._jdf.queryExecution().analyzed().rdd().unpersist(False))


def frame_of_plan(session: Any, plan: Any) -> DataFrame:
    """Return a frame of a logical plan."""
    return _of(session, java_class(session, _DATASET).ofRows(session._jsparkSession, plan))


def _of(session: Any, frame: Any) -> DataFrame:
    from pyspark.sql import DataFrame

    return DataFrame(frame, session)
