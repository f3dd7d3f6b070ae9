"""Write the outcome of a comparison as one page that needs nothing else: no script, no font, no other file. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from connect_py.app.verify.pairs import Result
from connect_py.app.verify.report import Difference, Outcome, hidden_of, kind_of, notes_of, shown_value, side_of

# colours of both themes have a contrast of 4.5 at least to their background (WCAG 2.2, 1.4.3)
_STYLE = """
:root {
  color-scheme: light dark;
  --text: #1c2024; --dim: #59626b; --back: #fff; --line: #d5dae0; --head: #f2f4f7; --good: #0a6b2d; --bad: #b3161b
}
@media (prefers-color-scheme: dark) {
  :root { --text: #e7eaee; --dim: #a3adb8; --back: #15181c; --line: #363d46; --head: #20252b; --good: #63d288; --bad: #ff8a85 }
}
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }
body { color: var(--text); background: var(--back) }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; width: 100% }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top }
td { overflow-wrap: anywhere }
th { background: var(--head) }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
code { font: .9em ui-monospace, monospace }
.wide { overflow-x: auto }
.dim { color: var(--dim) }
.good { color: var(--good); font-weight: 600 }
.bad { color: var(--bad); font-weight: 600 }
"""

_COLUMNS = (
    "table or topic",
    "source",
    "outcome",
    "rows in the source",
    "rows on the other side",
    "missing",
    "extra",
    "different",
    "seconds",
)


def page(results: Sequence[Result], began: datetime.datetime, *, seconds: float, error: str | None = None) -> str:
    """Return an HTML page.

    Args:
        began: when the comparison did, with a time zone.
        seconds: how long it took.
        error: why it ended early; None: it did not.
    """
    outcomes = [result.outcome for result in results if result.outcome is not None]
    verdict = _verdict(outcomes, error)
    lines = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(verdict)}</title><style>{_STYLE}</style></head><body>",
        "<h1>Tables compared with their source</h1>",
        f'<p class="{"good" if _is_good(outcomes, error) else "bad"}">{escape(verdict)}</p>',
        f'<p class="dim">connect-py verify began at {began:%Y-%m-%d %H:%M:%S %Z} and took {seconds:.1f} s.</p>',
    ]
    if error is not None:
        lines.append(f'<p><span class="bad">It ended early:</span> {escape(error)}</p>')
    for title, found in _by_pair(results):
        lines += [f"<h2>{escape(title)}</h2>", *(_pair(found) if found else ["<p>They have no table in common.</p>"])]
    return "\n".join([*lines, "</body></html>"]) + "\n"


def _is_good(outcomes: Sequence[Outcome], error: str | None) -> bool:
    return error is None and all(outcome.equal for outcome in outcomes)


def _verdict(outcomes: Sequence[Outcome], error: str | None) -> str:
    equal = sum(outcome.equal for outcome in outcomes)
    problems = sum(outcome.problem is not None for outcome in outcomes)
    different = len(outcomes) - equal - problems
    one, several = (
        ("table", "tables") if all(side_of(outcome) == "table" for outcome in outcomes) else ("table or topic", "tables and topics")
    )
    what = f"{one} is equal to its source" if len(outcomes) == 1 else f"{several} are equal to their source"
    parts = [f"{equal} of {len(outcomes)} {what}"]
    parts += [f"{different} {'differs' if different == 1 else 'differ'}"] if different else []
    parts += [f"{problems} could not be compared"] if problems else []
    return "; ".join([*parts, "not all were looked at"] if error is not None else parts)


def _by_pair(results: Iterable[Result]) -> Iterator[tuple[str, list[Outcome]]]:
    found: dict[str, list[Outcome]] = {}
    for result in results:
        outcomes = found.setdefault(str(result.pair), [])
        if result.outcome is not None:
            outcomes.append(result.outcome)
    yield from found.items()


def _pair(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in _COLUMNS)
    yield "</tr></thead><tbody>"
    yield from map(_line, outcomes)
    yield "</tbody></table></div>"
    for outcome in outcomes:
        if outcome.problem or outcome.differences or notes_of(outcome):
            yield from _details(outcome)


def _line(outcome: Outcome) -> str:
    said = "not compared" if outcome.problem else "equal" if outcome.equal else "different"
    numbers = [outcome.source_rows, outcome.table_rows, *(outcome.counts[kind] for kind in ("missing", "extra", "different"))]
    cells = [
        f"<td>{'topic ' if side_of(outcome) == 'topic' else ''}<code>{escape(outcome.table)}</code></td>",
        f"<td><code>{escape(', '.join(outcome.sources))}</code></td>",
        f'<td class="{"good" if outcome.equal else "bad"}">{said}</td>',
        *(f'<td class="number">{"" if outcome.problem else format(number, ",")}</td>' for number in numbers),
        f'<td class="number">{outcome.seconds:.1f}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _details(outcome: Outcome) -> Iterator[str]:
    yield f"<h3>{'Topic ' if side_of(outcome) == 'topic' else ''}<code>{escape(outcome.table)}</code></h3>"
    notes = [f"not compared: {outcome.problem}"] if outcome.problem else notes_of(outcome)
    if notes:
        yield f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"
    if not outcome.differences:
        return
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f'<th scope="col">{name}</th>' for name in ("difference", "key", "in the source", f"in the {side_of(outcome)}"))
    yield "</tr></thead><tbody>"
    for difference in outcome.differences:
        yield f"<tr>{''.join(_cells(outcome, difference))}</tr>"
    yield "</tbody></table></div>"
    if (hidden := hidden_of(outcome)) > 0:
        yield f"<p>… and {hidden:,} more</p>"


def _cells(outcome: Outcome, difference: Difference) -> Iterator[str]:
    """Yield the cells of a difference: of rows that both have, only what differs."""
    source, table = difference.source, difference.table
    if difference.copies is not None:
        row = _values(source or table)
        there, here = difference.copies
        source_text, table_text = f"{row}<br>{there:,} times", f"{row}<br>{here:,} times"
    elif difference.columns:
        source_text = _values({name: values[0] for name, values in difference.columns.items()})
        table_text = _values({name: values[1] for name, values in difference.columns.items()})
    else:
        source_text, table_text = _values(source), _values(table)
    if difference.place is not None:
        table_text += f'<br><span class="dim">{escape(difference.place)}</span>'
    yield f"<td>{kind_of(outcome, difference)}</td><td>{_values(difference.key)}</td><td>{source_text}</td><td>{table_text}</td>"


def _values(row: dict[str, Any] | None) -> str:
    if row is None:
        return '<span class="dim">no row</span>'
    return "<br>".join(f"<code>{escape(name)}</code> = <code>{escape(shown_value(value))}</code>" for name, value in row.items())
