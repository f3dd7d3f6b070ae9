"""Rows of a result for functions that read and write them in one (`engine/encode/fused.py`).

They are read as a file in memory: a value takes half of the time that places, and slices between them, take. Where the writer takes a
moment in pieces, no text of the whole is made: `datetime texts.<digits>` (the date, with the length's character before it and the space
behind it; hour and minute with their colons; second; fraction), `timestamp texts.0` (the date in the same way; the clock).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import StringIO

from connectors.engine.encode.fused import FusedSource, Single
from connectors.engine.encode.plan import Stored
from connectors.mysql.server.text_rows import LENGTH_SIZES, NULL

_TIMESTAMP = "timestamp texts.0"
#: Digits of the fraction in each form of DATETIME.
_FRACTIONS = {f"datetime texts.{digits}": digits for digits in range(7)}


def usual_rows(characters: Sequence[bool], wanted: Sequence[Mapping[str, Stored]]) -> FusedSource:
    """How rows stand one behind the other, of which no value is NULL or longer than 250 bytes.

    Args:
        characters: as of `row_function`.
        wanted: the forms that the writer takes beside texts, of each column (`engine/encode/fused.py`).
    """
    stored = _pieces(wanted)
    lines: list[str] = []
    for i, is_text in enumerate(characters):
        if i in stored:
            lines += ["c0 = begin + read(11)" if i == 0 else f"c{i} = read(12)", *_clock(stored[i].form, i)]
        else:
            size = "begin" if i == 0 else "read(1)"
            lines += [f"c{i} = read(ord({size}))", *_decoded(i, is_text)]
    return FusedSource(opening=_OPENING, loop=_LOOP, closing=_CLOSING, together=lines, stored=stored, names=_NAMES)


def any_rows(characters: Sequence[bool], wanted: Sequence[Mapping[str, Stored]]) -> FusedSource:
    """How all others stand; see `usual_rows`."""
    stored = _pieces(wanted)
    single = []
    for i, is_text in enumerate(characters):
        value = [f"c{i} = begin + read(11)", *_clock(stored[i].form, i)] if i in stored else _any_value(i, is_text)
        single.append(Single(i, f"begin == {chr(NULL)!r}", value, before=["begin = read(1)"] if i else ()))
    return FusedSource(opening=_OPENING, loop=_LOOP, closing=_CLOSING, single=single, stored=stored, names=_NAMES)


def _pieces(wanted: Sequence[Mapping[str, Stored]]) -> dict[int, Stored]:
    """The columns whose values are read in pieces."""
    return {i: way for i, forms in enumerate(wanted) for form, way in forms.items() if form in _FRACTIONS or form == _TIMESTAMP}


def _clock(form: str, i: int) -> list[str]:
    """What follows a moment's date. A piece is read in 40 ns, and cut out of a text in 90."""
    if form == _TIMESTAMP:
        return [f"clock{i} = read(8)"]
    digits = _FRACTIONS[form]
    return [f"clock{i} = read(6)", f"second{i} = read(2)", *(["read(1)", f"fraction{i} = read({digits})"] if digits else [])]


def _any_value(i: int, is_text: bool) -> list[str]:
    return [
        "size = ord(begin)",
        f"c{i} = read(size if size < {NULL} else sized(size, read))",
        *_decoded(i, is_text),
    ]


def _decoded(i: int, is_text: bool) -> list[str]:
    return [f"if not c{i}.isascii(): c{i} = c{i}.encode('latin-1').decode('utf-8', 'replace')"] if is_text else []


def _sized(first: int, read: Callable[[int], str]) -> int:
    """The length of a value of more than 250 bytes. Raises LookupError, TypeError, ValueError."""
    return int.from_bytes(read(LENGTH_SIZES[first]).encode("latin-1"), "little")


#: Behind the last row, so that one which ends too late is seen: it swallows the mark, and nothing is left for the next look.
_END = "\u0100"
_OPENING = [f"read = file_of(s + {_END!r}).read"]
_LOOP = f"(begin := read(1)) != {_END!r}"
_CLOSING = ["p = end"]
_NAMES: dict[str, object] = {"file_of": partial(StringIO, newline=""), "sized": _sized}
