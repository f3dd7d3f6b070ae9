"""One function for each shape of documents: the fields of a collection's documents are mostly the same, of the same types, in one order.

A shape is regular expressions over bytes, whose literals are the fields' types and names, and one format of bytes. What they match needs no
Python for each field: the lengths that the expressions cannot know are checked together, and texts that JSON escapes do not match at all.
Whatever does not match goes the slow way (`bson_json`), so a shape never decides what is wrong.
"""

from __future__ import annotations

import re
from binascii import hexlify
from collections.abc import Callable
from operator import itemgetter
from struct import Struct
from struct import error as struct_error

from orjson import dumps

from connect_py.data.java_text import escaped
from connect_py.rowcode import Code
from connectors.mongodb.values.bson_forms import MalformedBsonError, ScalarTexts
from connectors.mongodb.values.bson_lists import LISTS, list_texts

#: Text of a document, or None for one of another shape.
Shape = Callable[[bytes], str | None]
#: Text of a value and where it ends: `bson_json`'s way for one value.
ValueWriter = Callable[[int, bytes, int, int, int], tuple[str, int]]

#: Characters of a text that JSON shows as they are; DEL is escaped by Java.
_PLAIN = rb'[^\x00-\x1f"\\\x7f]*+'
_IS_PLAIN = re.compile(_PLAIN).fullmatch
#: Texts of more bytes, and those that need escapes, are written by themselves, whatever they hold: expressions take long to read them.
LONG_TEXT = 100
#: Arrays of more bytes are long, if of one of these types.
LONG_LIST = 120
_PLAIN_KINDS = frozenset((0x01, 0x02, 0x10))
_INT32 = Struct("<i")
#: More fields than these make an expression whose making costs more than it saves.
MAX_FIELDS = 200
#: Each shape that does not match costs a document a look.
MAX_SHAPES = 4
#: Documents of unknown shapes before one is looked at. Making a shape costs as much as writing a hundred documents.
FIRST_PATIENCE = 2
LONGEST_PATIENCE = 50_000
_BOOLEANS = {b"\0": b"false", b"\1": b"true"}


class _Segment:
    """What one expression matches: from the start, or the end of a value that is written the slow way, up to the next one."""

    def __init__(self) -> None:
        self.pattern: list[bytes] = []
        self.groups = 0
        self.numbers: list[int] = []  # groups that are unpacked together
        self.codes: list[str] = []

    def group(self, pattern: bytes) -> int:
        self.pattern.append(b"(" + pattern + b")")
        self.groups += 1
        return self.groups - 1


class _Plan:
    """Builds the source of a shape's function."""

    def __init__(self, texts: ScalarTexts, comma: str, quoted: Callable[[str], str], depth: int, mixed_lists: bool) -> None:
        self.segments = [_Segment()]
        self.format: list[str] = []
        self.values: list[str] = []
        self.checks: list[list[str]] = [[]]
        self.slow: list[tuple[int, int]] = []  # types, and how deep they are
        self.fields = 0
        self.has_twins = False
        self.has_mixed_lists = False
        self.depth = depth
        self._texts = texts
        self._comma = comma
        self._quoted = quoted
        self._mixed_lists = mixed_lists

    def document(self, data: bytes, start: int) -> tuple[int, str, int]:
        """Read the fields of a document; return its end, and its length as an expression of texts and a constant."""
        stop = start + _INT32.unpack_from(data, start)[0] - 1
        at, constant, lengths = start + 4, 5, ""
        self.format.append("{")
        separator = ""
        names: set[str] = set()
        while at < stop:
            zero = data.index(0, at)
            kind, name = data[at], data[at + 1 : zero].decode()
            self.fields += 1
            self.has_twins |= name in names
            names.add(name)
            self.segments[-1].pattern.append(re.escape(data[at : zero + 1]))
            constant += zero + 1 - at
            self.format.append(f"{separator}{self._quoted(name)}: ".replace("%", "%%"))
            separator = self._comma
            at = zero + 1
            at, length, more = self._value(kind, data, at, stop)
            constant += length
            lengths += more
        self.segments[-1].pattern.append(rb"\0")
        self.format.append("}")
        return stop + 1, lengths, constant

    def _value(self, kind: int, data: bytes, at: int, stop: int) -> tuple[int, int, str]:
        """Read a value; return where it ends, its constant length, and the rest of its length as an expression."""
        segment, place = self.segments[-1], len(self.segments) - 1
        if kind == 0x02:
            length = _INT32.unpack_from(data, at)[0]
            if length > LONG_TEXT or not _IS_PLAIN(data, at + 4, at + 3 + length):
                return self._slow(kind, data, at)
            size = segment.group(b"....")
            text = segment.group(_PLAIN)
            segment.pattern.append(rb"\0")
            self._number(size, "i")
            self.checks[place].append(f"n{place}at{size} != len(g{place}[{text}]) + 1")
            self._put('"%b"', f"g{place}[{text}]")
            return at + 4 + length, 5, f" + len(g{place}[{text}])"
        if kind in _NUMBERS:
            code, size = _NUMBERS[kind]
            found = self._number(segment.group(b"." * size), code)
            self._number_text(kind, found)
            return at + size, size, ""
        if kind == 0x07:
            self._put('{"$oid": "%b"}', f"hex_of(g{place}[{segment.group(b'.' * 12)}])")
            return at + 12, 12, ""
        if kind == 0x08:
            flag = segment.group(rb"[\0\1]")
            self._put("%b", f"BOOLEANS[g{place}[{flag}]]")
            return at + 1, 1, ""
        if kind == 0x0A:
            self.format.append("null")
            return at, 0, ""
        if kind == 0x03:
            size = segment.group(b"....")
            self._number(size, "i")
            before = len(self.segments)
            self.depth += 1
            end, lengths, constant = self.document(data, at)
            self.depth -= 1
            if len(self.segments) == before:
                self.checks[place].append(f"n{place}at{size} != {constant}{lengths}")
            else:  # its length holds values of the slow way, which the function adds up
                self.checks[-1].append(f"n{place}at{size} != {constant}{lengths}")
            return end, constant, lengths
        if kind == 0x04 and (elements := self._kind_of_elements(data, at)) is not None:
            size = segment.group(b"....")
            region = segment.group(LISTS[elements])
            segment.pattern.append(rb"\0")
            self._number(size, "i")
            self.checks[place].append(f"n{place}at{size} != len(g{place}[{region}]) + 5")
            self._put("%b", f"list_{elements}(g{place}[{region}])")
            return at + _INT32.unpack_from(data, at)[0], 5, f" + len(g{place}[{region}])"
        self.has_mixed_lists |= kind == 0x04
        return self._slow(kind, data, at)

    def _kind_of_elements(self, data: bytes, at: int) -> int | None:
        """Return the type of all elements of an array; None where they are of several types, or of one that `bson_lists` has not.

        Also None for long arrays of texts and plain numbers, if the driver takes the document: it needs less time for them.
        """
        kind = data[at + 4]
        if not self._mixed_lists and kind in _PLAIN_KINDS and _INT32.unpack_from(data, at)[0] > LONG_LIST and self._texts.int32(7) == "7":
            return None
        if kind in LISTS and re.compile(LISTS[kind], re.DOTALL).fullmatch(data, at + 4, at + _INT32.unpack_from(data, at)[0] - 1):
            return kind
        return None

    def _slow(self, kind: int, data: bytes, at: int) -> tuple[int, int, str]:
        index = len(self.slow)
        self.slow.append((kind, self.depth))
        self._put("%b", f"t{index}")
        self.segments.append(_Segment())
        self.checks.append([])
        return _end_of(kind, data, at), 0, f" + l{index}"

    def _number(self, group: int, code: str) -> str:
        segment = self.segments[-1]
        segment.numbers.append(group)
        segment.codes.append(code)
        return self._variable(len(self.segments) - 1, group)

    @staticmethod
    def _variable(place: int, group: int) -> str:
        return f"n{place}at{group}"

    def _number_text(self, kind: int, name: str) -> None:
        whole = {0x10: self._texts.int32, 0x12: self._texts.int64, 0x09: self._texts.date}.get(kind)
        shown = whole(7) if whole else ""
        if shown.count("7") == 1 and not shown.endswith('Z"}'):
            self._put(shown.replace("%", "%%").replace("7", "%d"), name)
        else:
            self._put("%b", f"{_TEXTS[kind]}_text({name}).encode()")

    def _put(self, form: str, value: str) -> None:
        self.format.append(form)
        self.values.append(value)

    def write(self, code: Code) -> None:
        """Write the function's statements."""
        code.add("end = len(data)")
        with code.block("if size_of(data)[0] != end:"):
            code.add("return None")
        code.add("at = 4")
        for place, segment in enumerate(self.segments):
            code.add(f"m = match_{place}(data, at)")
            with code.block("if m is None:"):
                code.add("return None")
            code.add(f"g{place} = m.groups()")
            if segment.numbers:
                variables = ", ".join(self._variable(place, group) for group in segment.numbers)
                picked = f"(g{place}[{segment.numbers[0]}],)" if len(segment.numbers) == 1 else f"pick_{place}(g{place})"
                code.add(f"{variables}, = unpack_{place}(join_bytes({picked}))")
            if place < len(self.slow):
                kind, depth = self.slow[place]
                code.add("at = m.end()")
                if kind == 0x02:
                    code.add("stop = at + 4 + size_of(data, at)[0]")
                    with code.block("if stop < at + 5 or data[stop - 1]:"):
                        code.add("return None")
                    code.add(f"t{place} = dump_text(data[at + 4 : stop - 1].decode())")
                else:
                    code.add(f"t{place}, stop = write_value({kind}, data, at, end, {depth})", f"t{place} = t{place}.encode()")
                code.add(f"l{place} = stop - at", "at = stop")
            if self.checks[place]:
                with code.block(f"if {' or '.join(self.checks[place])}:"):
                    code.add("return None")
        with code.block("if m.end() != end:"):
            code.add("return None")
        code.add(f"return (FORMAT % ({''.join(v + ', ' for v in self.values)})).decode()")


_NUMBERS = {0x10: ("i", 4), 0x12: ("q", 8), 0x09: ("q", 8), 0x01: ("d", 8)}
_TEXTS = {0x10: "int32", 0x12: "int64", 0x09: "date", 0x01: "double"}
_SIZES = {0x06: 0, 0x11: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}
_COUNTED = {0x02: 4, 0x04: 0, 0x05: 5, 0x0C: 16, 0x0D: 4, 0x0E: 4, 0x0F: 0}


def _end_of(kind: int, data: bytes, at: int) -> int:
    if kind in _SIZES:
        return at + _SIZES[kind]
    if kind == 0x0B:
        return data.index(0, data.index(0, at) + 1) + 1
    return at + int(_INT32.unpack_from(data, at)[0]) + _COUNTED[kind]


def shape_of(
    data: bytes,
    texts: ScalarTexts,
    comma: str,
    quoted: Callable[[str], str],
    value: ValueWriter,
    depth: int = 1,
    *,
    mixed_lists: bool = True,
) -> Shape | None:
    """Return the function for documents like this one, which is sound.

    None where there are too many fields, two of one name, or (unless `mixed_lists`) lists that hold documents, lists or several types.
    Values that are written the slow way count as so deep if they are in the document itself.
    """
    plan = _Plan(texts, comma, quoted, depth, mixed_lists)
    try:
        end, _, _ = plan.document(data, 0)
    except UnicodeDecodeError:
        return None
    if plan.fields > MAX_FIELDS or plan.has_twins or end != len(data) or (plan.has_mixed_lists and not mixed_lists):
        return None
    code = Code("documents of a shape")
    for name, given in {
        "FORMAT": "".join(plan.format).encode(),
        "BOOLEANS": _BOOLEANS,
        "hex_of": hexlify,
        "join_bytes": b"".join,
        "size_of": _INT32.unpack_from,
        "write_value": value,
        "dump_text": dumps,
        **{f"{name}_text": getattr(texts, name) for name in _TEXTS.values()},
        **{f"list_{kind}": write for kind, write in list_texts(texts, comma).items()},
    }.items():
        code.bind(name, given)
    for place, segment in enumerate(plan.segments):
        code.bind(f"match_{place}", re.compile(b"".join(segment.pattern), re.DOTALL).match)
        if segment.numbers:
            code.bind(f"unpack_{place}", Struct("<" + "".join(segment.codes)).unpack)
            code.bind(f"pick_{place}", itemgetter(*segment.numbers))
    with code.function("read_shape", "data"):
        plan.write(code)
    return code.make()["read_shape"]


class Shapes:
    """The shapes of late. A document without one is looked at now and then; less and less where that does not pay.

    Args:
        make: a shape of a sound document.

    Attributes:
        hits: documents that had a shape, since one was made last.
    """

    def __init__(self, make: Callable[[bytes], Shape | None]) -> None:
        self._make = make
        self._known: tuple[Shape, ...] = ()
        self.hits = 0
        self._misses = 0
        self._patience = FIRST_PATIENCE

    def __len__(self) -> int:
        return len(self._known)

    def text(self, data: bytes) -> str | None:
        """Return the text of a document; None where no shape matches it."""
        for shape in self._known:
            try:
                text = shape(data)
            except (MalformedBsonError, struct_error, IndexError, ValueError):
                continue
            if text is not None:
                if shape is not self._known[0]:
                    self._known = (shape, *(other for other in self._known if other is not shape))
                self.hits += 1
                return escaped(text)
        return None

    def missed(self, data: bytes) -> None:
        """Note a sound document that no shape matched."""
        self._misses += 1
        if self._misses < self._patience:
            return
        pays = self.hits >= 16 * self._misses or self._patience == FIRST_PATIENCE
        self._patience = FIRST_PATIENCE + 1 if pays else min(self._patience * 4, LONGEST_PATIENCE)
        kept = self._known[: MAX_SHAPES - 1] if self.hits >= self._misses else ()
        shape = self._make(data)
        self._known = kept if shape is None else (shape, *kept)
        self.hits = self._misses = 0
