"""Plans that are made once and carried out for many batches, of rows that the driver holds.

Spark analyses and optimizes a plan as if it had never seen it, which takes several times as long as the few rows that it is for. Here a
frame's optimized plan is taken apart into projections and filters, and these are carried out one after the other for other rows of the same
columns, by the rule with which the optimizer itself evaluates what is held locally (`ConvertToLocalRelation`). A plan that is made of
anything else, or that this rule does not take, is left to Spark, batch by batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from spark_sink.spark.local import HELD, activate, frame_of_plan, having_settings, held_rows, java_class, scala_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")

_CATALYST = "org.apache.spark.sql.catalyst"
_RULE = f"{_CATALYST}.optimizer.ConvertToLocalRelation"

#: Setting of Spark's: rules that the optimizer leaves out. Those here look at the rows: whether there are any, or one.
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_OF_ROWS = (_RULE, f"{_CATALYST}.optimizer.PropagateEmptyRelation", f"{_CATALYST}.optimizer.OptimizeOneRowPlan")

#: Plans that are kept. A sink of more tables, schemas and shapes begins again.
_MOST = 500


class Evaluation:
    """Projections and filters of rows with certain columns; one thread at a time carries them out."""

    def __init__(self, columns: Any, steps: Sequence[tuple[str, Any]]) -> None:
        self._columns = columns
        self._steps = steps
        self._lock = threading.Lock()

    @classmethod
    def of_frame(cls, frame: DataFrame, rows: int) -> Evaluation | None:
        """Return what a frame does to the rows that it is made of; None if that is more than to project and to filter them.

        Args:
            rows: how many there are. A plan of others takes nothing from them, since a condition holds for none whatever they are.
        """
        made, steps = cast("Any", frame), list[tuple[str, Any]]()
        session = made.sparkSession
        excluded = ",".join(filter(None, (session.conf.get(_EXCLUDED, None), *_OF_ROWS)))
        with having_settings(session, {_EXCLUDED: excluded}):
            node = made._jdf.queryExecution().optimizedPlan()
        while (name := node.nodeName()) in ("Project", "Filter"):
            steps.append((name, node.projectList() if name == "Project" else node.condition()))
            node = node.child()
        return cls(node.output(), steps[::-1]) if name == HELD and node.data().size() == rows else None

    def __call__(self, session: Any, rows: Any) -> DataFrame | None:
        """Return what becomes of other rows, which the driver holds then; None if it takes a job after all.

        Args:
            rows: a Seq of Spark's internal rows, with the same columns.
        """
        activate(session)
        rule = scala_object(session, _RULE)
        with self._lock:
            plan = java_class(session, f"{_CATALYST}.plans.logical.{HELD}")(
                self._columns, rows, False, java_class(session, "scala.Option").empty()
            )
            for name, what in self._steps:
                plan = rule.apply(java_class(session, f"{_CATALYST}.plans.logical.{name}")(what, plan))
        return frame_of_plan(session, plan) if plan.nodeName() == HELD else None


class Evaluations:
    """A task's evaluations, by what makes the frames from which they are taken: topics, schemas, SQL. Any thread may use them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Evaluation | None] = {}
        self._columns: dict[Hashable, Sequence[str]] = {}

    def columns(self, key: Hashable, frame: Callable[[], DataFrame]) -> Sequence[str]:
        """Return the names of a frame's columns."""
        if (found := self._columns.get(key)) is None:
            found = _put(self._columns, key, tuple(frame().columns))
        return found

    def evaluated(self, key: Hashable, held: DataFrame, session: Any, frame: Callable[[], DataFrame]) -> DataFrame:
        """Return a frame that is made of one that the driver holds, evaluated if that takes no job."""
        rows = held_rows(held)
        if rows is None or not (count := rows.size()):
            return frame()
        if key not in self._known:
            _put(self._known, key, Evaluation.of_frame(frame(), count))
        evaluation = self._known.get(key)
        found = None if evaluation is None else evaluation(session, rows)
        return frame() if found is None else found


def _put(known: dict[Hashable, T], key: Hashable, value: T) -> T:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value
    return value
