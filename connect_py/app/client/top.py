"""What `connect-py top` shows, and what its keys do: the state of the worker's page (docs/ui.md) as lines of a terminal. Pure.

`TopView` belongs to the thread of the terminal. Texts of the worker may hold anything: what reaches a line is printable and fits it.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from connect_py.app.client.text import BOLD, DIM, GREEN, RED, YELLOW, coloured
from connect_py.log.redact import readable
from connect_py.metrics.verdict import size_text, time_text

#: Verdicts that are worse come first; rest_api/ui/words.js has the same order.
ORDER = (
    "failed",
    "stalled",
    "waiting for Kafka",
    "disconnected",
    "unassigned",
    "behind",
    "restarting",
    "starting",
    "snapshotting",
)
_BAD, _LATE = frozenset(ORDER[:2]), frozenset(ORDER[2:6])
_QUIET = frozenset(("paused", "stopped", "idle", "unknown"))

_BLOCKS = "▁▂▃▄▅▆▇█"

#: Lines of a cause in the list; all of it is one key away.
_CAUSE_LINES = 2

_KEYS_OF_LIST = "↑↓ choose  Enter more  / search  p pause  r resume  s stop  R restart  q quit"
_KEYS_OF_ONE = "↑↓ choose  Esc back  p pause  r resume  s stop  R restart  q quit"


class Wish(NamedTuple):
    """What a key asks for: ``quit``, or ``pause``, ``resume``, ``stop`` or ``restart`` of a connector."""

    verb: str
    name: str = ""


_VERBS = {"p": "pause", "r": "resume", "s": "stop", "R": "restart"}
_STEPS = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -10, "pagedown": 10, "home": -1_000_000, "g": -1_000_000}
_STEPS |= {"end": 1_000_000, "G": 1_000_000}

_SEQUENCES = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down", b"\x1b[5~": "pageup", b"\x1b[6~": "pagedown",
    b"\x1b[H": "home", b"\x1b[F": "end", b"\x1bOH": "home", b"\x1bOF": "end", b"\x1b[1~": "home", b"\x1b[4~": "end",
}  # fmt: skip
_NAMED = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x1b": "escape"}


def keys_of(typed: bytes) -> list[str]:
    """Return the keys that a terminal sent in one piece: characters, and names such as ``up``, ``enter`` and ``escape``."""
    found = []
    while typed:
        sequence = next((each for each in _SEQUENCES if typed.startswith(each)), None)
        if sequence is not None:
            found.append(_SEQUENCES[sequence])
            typed = typed[len(sequence) :]
            continue
        if typed.startswith((b"\x1b[", b"\x1bO")):  # a key that means nothing here: it ends with a letter or ~
            end = next((at for at, byte in enumerate(typed[2:], 2) if 0x40 <= byte <= 0x7E), len(typed) - 1)
            typed = typed[end + 1 :]
            continue
        size = 1 if typed[0] < 0xC0 else 2 if typed[0] < 0xE0 else 3 if typed[0] < 0xF0 else 4
        character, typed = typed[:size].decode(errors="ignore"), typed[size:]
        if character:
            found.append(_NAMED.get(character, character))
    return found


@dataclass(slots=True)
class TopView:
    """What is shown, and where the user is in it.

    Attributes:
        worker: whose state it is, for people.
        entries: connector → its entry of ``/ui/api/state``.
        detail: of the connector that is open (``/ui/api/connectors/NAME``); None until it is known.
        selected: the connector that keys are about.
        is_open: it is shown alone.
        search: what names, classes and states must contain.
        is_typing: keys are characters of `search`.
        asked: the wish that waits for a yes.
        message: what the last key led to.
        problem: why what is shown is old; empty when it is not.
    """

    worker: str
    entries: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    detail: Mapping[str, Any] | None = None
    selected: str = ""
    is_open: bool = False
    search: str = ""
    is_typing: bool = False
    asked: Wish | None = None
    message: str = ""
    problem: str = ""
    _seq: int = field(default=-1, init=False)

    @property
    def since(self) -> int | None:
        """The number of the last answer; None before the first."""
        return None if self._seq < 0 else self._seq

    def update(self, state: Mapping[str, Any]) -> None:
        """Take an answer of ``/ui/api/state``."""
        kept = {} if state["full"] else self.entries
        gone = set(state["gone"])
        self.entries = {name: entry for name, entry in {**kept, **state["connectors"]}.items() if name not in gone}
        self._seq, self.problem = state["seq"], ""
        if self.is_open and self.selected not in self.entries:
            self.is_open, self.detail, self.message = False, None, f"{self.selected} is deleted."

    def names(self) -> list[str]:
        """Return the connectors that are shown, those with the worst verdict first."""
        text = self.search.lower()
        found = [name for name, each in self.entries.items() if text in f"{name} {each['class']} {each['verdict']}".lower()]
        return sorted(found, key=lambda name: (_severity(self.entries[name]["verdict"]), name))

    @property
    def has_failures(self) -> bool:
        """Whether any connector is failed."""
        return any(entry["verdict"] == "failed" for entry in self.entries.values())

    # -- keys

    def press(self, key: str) -> Wish | None:
        """Take a key; returns what is to be done besides showing something else."""
        if self.asked is not None:
            wish, self.asked = self.asked, None
            self.message = "" if key in ("y", "Y") else f"{wish.name} was left as it is."
            return wish if key in ("y", "Y") else None
        if self.is_typing:
            self._type(key)
            return None
        self.message = ""
        if key == "q":
            return Wish("quit")
        if key in _STEPS:
            self._step(_STEPS[key])
        elif key == "/":
            self.is_typing, self.is_open, self.detail = True, False, None
        elif key == "enter" and self._chosen():
            self.selected, self.is_open = self._chosen(), True
        elif key == "escape":
            if not self.is_open:
                self.search = ""
            self.is_open, self.detail = False, None
        elif key in _VERBS and self._chosen():
            return self._ask(Wish(_VERBS[key], self._chosen()))
        return None

    def _type(self, key: str) -> None:
        if key in ("enter", "escape"):
            self.is_typing = False
            if key == "escape":
                self.search = ""
        elif key == "backspace":
            self.search = self.search[:-1]
        elif len(key) == 1 and key.isprintable():
            self.search += key

    def _step(self, steps: int) -> None:
        names = self.names()
        if names:
            at = names.index(self._chosen()) + steps
            self.selected, self.detail = names[max(0, min(at, len(names) - 1))], None

    def _chosen(self) -> str:
        names = self.names()
        return self.selected if self.selected in names else names[0] if names else ""

    def _ask(self, wish: Wish) -> Wish | None:
        if wish.verb != "stop":
            return wish
        self.asked = wish
        return None

    # -- lines

    def frame(self, width: int, height: int | None, *, clock: str = "", colour: bool = False) -> list[str]:
        """Return the lines of a screen.

        Args:
            width: cells of a line.
            height: lines of the screen; None for all of them, without the keys.
            clock: the time of day that is shown.
            colour: mark states in colour.
        """
        paint = _Paint(width, colour)
        head = self._head(paint, clock)
        if height is None:
            return [*head, *(line for block in self._list(paint, marked=False) for line in block)]
        foot = self._foot(paint)
        room = max(1, height - len(head) - len(foot))
        body = self._one(paint)[:room] if self.is_open else self._window(self._list(paint, marked=True), room)
        return [*head, *body, *[""] * (room - len(body)), *foot][:height]

    def _head(self, paint: _Paint, clock: str) -> list[str]:
        tones = [tone(entry["verdict"]) for entry in self.entries.values()]
        counts = ", ".join(f"{tones.count(each)} {word}" for each, word in _TONE_WORDS.items() if tones.count(each))
        title = f"{self.worker}  {len(tones)} connector{'' if len(tones) == 1 else 's'}{f': {counts}' if counts else ''}"
        room = paint.width - len(clock) - 1 if clock else paint.width
        lines = [paint.line(f"{fitted(title, room)} {clock}", BOLD)]
        if self.problem:
            lines.append(paint.line(f"{self.problem} What is shown is the last that was known.", RED))
        return lines

    def _foot(self, paint: _Paint) -> list[str]:
        if self.asked is not None:
            text = f"Stop {self.asked.name}? Its tasks end, and its database keeps its log. y/n"
        elif self.is_typing:
            text = f"/{self.search}█"
        else:
            text = self.message or (f"Only what contains {self.search!r}; Esc shows all." if self.search else "")
        return [paint.line(text, YELLOW), paint.line(_KEYS_OF_ONE if self.is_open else _KEYS_OF_LIST, DIM)]

    def _window(self, blocks: Sequence[Sequence[str]], room: int) -> list[str]:
        """Return as many lines as there is room for, those of the chosen connector among them; the first block is the table's head."""
        head, rows = blocks[0], blocks[1:]
        room -= len(head)
        names = self.names()
        at = names.index(self._chosen()) if names else 0
        first = 0
        while first < at and sum(map(len, rows[first : at + 1])) > room:
            first += 1
        return [*head, *[line for block in rows[first:] for line in block][: max(0, room)]]

    def _list(self, paint: _Paint, *, marked: bool) -> list[list[str]]:
        names, chosen = self.names(), self._chosen()
        if not names:
            return [[paint.line("No connector matches." if self.entries else "There is no connector yet.", DIM)]]
        rows = {name: _cells(self.entries[name]) for name in names}
        shown = dict(_WIDTHS)
        if not any(row["SNAPSHOT"] for row in rows.values()):
            del shown["SNAPSHOT"]
        elif paint.width < _WIDE:
            del shown["5 MINUTES"]
        left = paint.width - 2 - sum(shown.values()) - len(shown)
        width = max(8, min(left, max(map(_cells_of, names))))
        blocks = [[paint.line(f"  {fitted('NAME', width)} {_columns(zip(shown, shown.values(), strict=True))}", DIM)]]
        for name, row in rows.items():
            entry = self.entries[name]
            mark = "> " if marked and name == chosen else "  "
            rest = _columns((row[column], size) for column, size in shown.items())
            line = paint.row(mark + fitted(_shortened(name, width), width), rest, entry["verdict"])
            blocks.append([line, *_trouble(entry, paint)])
        return blocks

    def _one(self, paint: _Paint) -> list[str]:
        name, entry = self.selected, self.entries[self.selected]
        java_class = str(entry["class"]).rpartition(".")[2]
        reason = f": {entry['reason']}" if entry["reason"] else ""
        lines = [
            paint.line(f"{name}  {java_class} ({entry['type']})", BOLD),
            paint.line(f"{entry['verdict']}{reason}", _TONE_COLOURS[tone(entry["verdict"])]),
            paint.line(f"worker {entry['worker'] or '-'}  {_rate(entry['rate'])}  behind {_behind(entry['behind']) or '-'}"),
            paint.line(f"five minutes {spark(entry['trend'], 30) or 'without records'}"),
        ]
        if self.detail is None:
            return [*lines, "", paint.line("…", DIM)]
        for task in self.detail["task_list"]:
            latest = task["latest"]
            memory = f"  {size_text(latest['rss_bytes'])} of memory" if latest.get("rss_bytes") else ""
            lines += [
                "",
                paint.line(f"Task {task['task']}: {task['state'].lower()} on {task['worker']}  {_rate(latest.get('records_out'))}{memory}"),
            ]
            if task["statement"]:
                lines.append(paint.line("  run at the database:", DIM))
                lines += paint.wrapped(task["statement"], "    ", YELLOW)
            lines += paint.trace(task["trace"])
        lines += ["", *paint.trace(self.detail["trace"])] if self.detail["trace"] else []
        tables = [table for snapshot in self.detail["snapshots"].values() for table in snapshot["tables"]]
        if tables:
            lines += ["", paint.line("Snapshot", BOLD), *(paint.line(f"  {_table(table)}") for table in tables)]
        return lines


@dataclass(frozen=True, slots=True)
class _Paint:
    """Makes lines of `width` cells; the colour goes around what fits."""

    width: int
    colour: bool

    def line(self, text: str, code: str = "") -> str:
        return coloured(fitted(text, self.width).rstrip(), code, self.colour)

    def row(self, name: str, rest: str, verdict: str) -> str:
        """Return a row of the table; the verdict is the first column of the rest."""
        shown = fitted(f"{name} {rest}", self.width).rstrip()
        begin = len(name) + 1
        end = begin + len(verdict)
        return shown[:begin] + coloured(shown[begin:end], _TONE_COLOURS[tone(verdict)], self.colour) + shown[end:]

    def wrapped(self, text: str, indent: str, code: str = "", lines: int | None = None) -> list[str]:
        clean = readable(" ".join(text.split()))
        found = textwrap.wrap(clean, max(20, self.width - len(indent)), break_long_words=True, max_lines=lines, placeholder=" …")
        return [self.line(indent + each, code) for each in found]

    def trace(self, trace: str | None) -> list[str]:
        """Return the causes of a trace whole, and its calls as they are, since they come last."""
        lines: list[str] = []
        for each in (trace or "").splitlines():
            lines += [self.line(each.replace("\t", "    "), DIM)] if each.startswith("\t") else self.wrapped(each, "  ")
        return lines


_TONE_WORDS = {"bad": "failed or stalled", "late": "late", "fine": "fine", "quiet": "idle or stopped"}
_TONE_COLOURS = {"bad": RED, "late": YELLOW, "fine": GREEN, "quiet": DIM}

#: The columns after the name, and their cells.
_WIDTHS = {"STATE": 13, "TASKS": 5, "RECORDS": 8, "5 MINUTES": 10, "BEHIND": 13, "SNAPSHOT": 14}

#: On a narrower screen a running snapshot takes the place of the five minutes: names need theirs.
_WIDE = 100


def _severity(verdict: str) -> int:
    return ORDER.index(verdict) if verdict in ORDER else len(ORDER)


def tone(verdict: str) -> str:
    """Return ``bad``, ``late``, ``quiet`` or ``fine``."""
    return "bad" if verdict in _BAD else "late" if verdict in _LATE else "quiet" if verdict in _QUIET else "fine"


def spark(values: Sequence[float], width: int) -> str:
    """Return a line of blocks for values, the oldest first; several values share a cell by their largest. Empty without values."""
    if not values or width < 1:
        return ""
    step = max(1, -(-len(values) // width))
    shares = [max(values[at : at + step]) for at in range(0, len(values), step)]
    top = max(shares)
    return "".join(_BLOCKS[round(value / top * (len(_BLOCKS) - 1))] if top > 0 else _BLOCKS[0] for value in shares)


def _cells(entry: Mapping[str, Any]) -> dict[str, str]:
    whole = sum(entry["tasks"].values())
    tasks = f"{entry['tasks'].get('RUNNING', 0)}/{whole}"
    rate = "" if entry["rate"] is None else _rate(entry["rate"])
    snapshot = entry["snapshot"]
    return {
        "STATE": str(entry["verdict"]),
        "TASKS": tasks,
        "RECORDS": rate,
        "5 MINUTES": spark(entry["trend"], _WIDTHS["5 MINUTES"]),
        "BEHIND": _behind(entry["behind"]),
        "SNAPSHOT": _snapshot(snapshot) if snapshot and snapshot["state"] == "RUNNING" else "",
    }


def _trouble(entry: Mapping[str, Any], paint: _Paint) -> list[str]:
    found = entry["trouble"]
    if not found:
        return []
    statement = found["statement"]
    cause = found["line"].partition(statement)[0] if statement else found["line"]
    lines = paint.wrapped(cause, "    ", RED, _CAUSE_LINES)
    return [*lines, paint.line(f"    {readable(statement)}", YELLOW)] if statement else lines


def _rate(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}/s" if value >= 100 or value == int(value) else f"{value:.3g}/s"


def _behind(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    parts = []
    if "seconds" in found:
        parts.append(time_text(found["seconds"]))
    if found.get("records"):
        parts.append(f"{found['records']:,.0f} rec")
    if found.get("distance"):
        parts.append(time_text(found["distance"]) if found.get("unit") == "seconds" else size_text(found["distance"]))
    return ", ".join(parts)


def _snapshot(snapshot: Mapping[str, Any]) -> str:
    rows, estimate, left = snapshot["rows"], snapshot.get("estimated_rows"), snapshot.get("seconds_left")
    share = f"{int(100 * rows / estimate)} %" if estimate and rows < estimate else f"{rows:,.0f} rows"
    return share if left is None else f"{share}, {time_text(left)}"


def _table(table: Mapping[str, Any]) -> str:
    rows, estimate = f"{table['rows']:,.0f}", table.get("estimated_rows")
    parts = [f"{rows} of about {estimate:,.0f} rows" if estimate else f"{rows} rows"]
    if table.get("rows_per_second"):
        parts.append(_rate(table["rows_per_second"]))
    if table.get("seconds_left") is not None:
        parts.append(f"{time_text(table['seconds_left'])} left")
    return f"{table['table']}: {table['state'].lower()}, {', '.join(parts)}"


def _columns(cells: Iterable[tuple[str, int]]) -> str:
    return " ".join(fitted(text, width) for text, width in cells)


def _shortened(name: str, width: int) -> str:
    """Return a name that is too long without its middle: names often differ in their end."""
    shown = readable(name)
    if _cells_of(shown) <= width or not shown.isascii():
        return shown
    end = (width - 1) // 2
    return f"{shown[: width - 1 - end]}…{shown[len(shown) - end :]}"


def _cells_of(text: str) -> int:
    return sum(map(_cell, readable(text)))


def _cell(character: str) -> int:
    return 0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fitted(text: str, width: int) -> str:
    """Return a text of exactly `width` cells: filled with spaces, or cut with an ellipsis. Control characters are shown, not sent."""
    shown = readable(text)
    if (cells := sum(map(_cell, shown))) <= width:
        return shown + " " * (width - cells)
    kept, cells = "", 0
    for character in shown:
        if cells + _cell(character) > width - 1:
            break
        kept, cells = kept + character, cells + _cell(character)
    return f"{kept}…{' ' * (width - cells - 1)}" if width > 0 else ""
