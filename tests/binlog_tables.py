"""Tables of columns of every type of MySQL, and values for them: literals of SQL, drawn from a seeded generator."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

Chance = random.Random


@dataclass(frozen=True)
class Kind:
    """A type of columns.

    Attributes:
        family: how values compare.
        sql: of the column's definition.
        literal: draws a value.
        charset: of characters and labels.
        digits: of a fraction of a moment, or bits.
    """

    family: str
    sql: str
    literal: Callable[[Chance], str]
    charset: str = ""
    digits: int = 0


@dataclass(frozen=True)
class Generated:
    """A table: `id` and columns `c0`, `c1`, …"""

    name: str
    kinds: tuple[Kind, ...]

    @property
    def statement(self) -> str:
        columns = "".join(f", c{i} {kind.sql}" for i, kind in enumerate(self.kinds))
        return f"CREATE TABLE {self.name} (id INT PRIMARY KEY{columns}) CHARACTER SET utf8mb4"

    def row(self, chance: Chance, id_: int) -> str:
        values = ["NULL" if chance.random() < 0.12 else kind.literal(chance) for kind in self.kinds]
        return f"({id_}, {', '.join(values)})"


def _bytes(data: bytes) -> str:
    return f"0x{data.hex()}" if data else "''"


def _characters(text: str) -> str:
    return f"_utf8mb4 0x{text.encode().hex()}" if text else "''"


def _integer(bits: int, *, unsigned: bool) -> Callable[[Chance], str]:
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    edges = (low, low + 1, high, high - 1, 0, 1, high // 2)
    return lambda chance: str(chance.choice(edges) if chance.random() < 0.4 else chance.randint(low, high) >> chance.randrange(bits))


def _decimal(precision: int, scale: int, *, unsigned: bool) -> Callable[[Chance], str]:
    def literal(chance: Chance) -> str:
        digits = "".join(chance.choices("0123456789", k=precision))
        digits = chance.choice([digits, digits, "9" * precision, "0" * precision, "0" * (precision - 1) + digits[-1]])
        sign = "-" if not unsigned and chance.random() < 0.5 else ""
        return f"{sign}{digits[: precision - scale] or '0'}.{digits[precision - scale :] or '0'}"

    return literal


def _float(chance: Chance) -> str:
    # the largest finite one has 38 digits
    return f"{chance.choice([0.0, 1.5, -0.1, 1e30, chance.uniform(-1e6, 1e6), chance.uniform(-1, 1) * 10.0 ** chance.randint(-35, 37)])!r}"


def _double(chance: Chance) -> str:
    while True:
        (found,) = struct.unpack("<d", chance.randbytes(8))
        if 1e-300 < abs(found) < 1e300:  # others are no literals of the server
            return repr(found) if chance.random() < 0.7 else repr(chance.uniform(-1000, 1000))


def _moment(digits: int, first: datetime, last: datetime) -> Callable[[Chance], str]:
    def literal(chance: Chance) -> str:
        found = first + timedelta(seconds=chance.randrange(int((last - first).total_seconds())))
        fraction = chance.choice(["000000", "999999", "100000", f"{chance.randrange(10**6):06}"])[:digits]
        # the server would round up what does not fit
        return f"'{found:%Y-%m-%d %H:%M:%S}{'.' if digits else ''}{fraction}'" if chance.random() < 0.93 else "'0000-00-00 00:00:00'"

    return literal


_ODD_MOMENTS = ("'2020-00-00 01:02:03'", "'0000-12-00 23:00:00'", "'0001-01-01 01:02:03'", "'0069-12-31 23:59:59'", "'0070-01-01 00:00:00'")


def _partial_moment(digits: int) -> Callable[[Chance], str]:
    usual = _moment(digits, datetime(1000, 1, 1), datetime(9999, 12, 30))
    return lambda chance: usual(chance) if chance.random() < 0.9 else chance.choice(_ODD_MOMENTS)


def _date(chance: Chance) -> str:
    if chance.random() < 0.1:
        return chance.choice(["'0000-00-00'", "'2020-00-00'", "'1999-12-00'", "'0001-01-01'", "'0069-12-31'", "'0099-02-28'"])
    return f"'{date(1000, 1, 1) + timedelta(days=chance.randrange(3_287_000))}'"


def _time(digits: int) -> Callable[[Chance], str]:
    def literal(chance: Chance) -> str:
        fraction = f".{chance.randrange(10**digits):0{digits}}" if digits else ""
        hours = f"{chance.choice(['', '-'])}{chance.choice([0, 12, 23, 99, 837])}"
        return f"'{hours}:{chance.randrange(60):02}:{chance.randrange(60):02}{fraction}'"

    return literal


#: Letters that each character set has.
LETTERS = {
    "utf8mb4": "aZ09 žťкї中文😀'\\\"\n",
    "utf8mb3": "aZ09 žťкї中文'\\\"",
    "ascii": "aZ09 ~",
    "latin1": "aZ éüÿ€\x81",
    "latin2": "aZ žłčő",
    "latin5": "aZ ğışÇ",
    "latin7": "aZ ąčžē",
    "cp1250": "aZ žłčő",
    "cp1251": "aZ привет",
    "cp1256": "aZ سلام",
    "cp1257": "aZ ąčžē",
    "cp850": "aZ éüñ",
    "cp852": "aZ łčő",
    "cp866": "aZ привет",
    "koi8r": "aZ привет",
    "koi8u": "aZ привіт",
    "greek": "aZ αβγώ",
    "hebrew": "aZ שלום",
    "tis620": "aZ กขค",
    "gbk": "aZ 中文字",
    "gb2312": "aZ 中文字",
    "gb18030": "aZ 中文😀",
    "big5": "aZ 中文字",
    "sjis": "aZ 日本語カナ",
    "cp932": "aZ 日本語",
    "ujis": "aZ 日本語",
    "eucjpms": "aZ 日本語",
    "euckr": "aZ 한국어",
    "macroman": "aZ éü",
    "macce": "aZ čž",
    "dec8": "aZ éü",
    "hp8": "aZ éü",
    "swe7": "aZ09",
    "armscii8": "aZ Ա",
    "keybcs2": "aZ čž",
    "geostd8": "aZ ა",
    "ucs2": "aZ 中ž",
    "utf16": "aZ 中ž",
    "utf16le": "aZ 中ž",
    "utf32": "aZ 中ž",
}


def _text(charset: str, limit: int) -> Callable[[Chance], str]:
    letters = LETTERS[charset]
    return lambda chance: _characters("".join(chance.choices(letters, k=chance.choice([0, 1, chance.randint(0, limit), limit]))))


def _octets(limit: int) -> Callable[[Chance], str]:
    return lambda chance: _bytes(chance.randbytes(chance.choice([0, 1, chance.randint(0, limit), limit])))


def _labelled(family: str, labels: Sequence[str], charset: str) -> Kind:
    shown = ", ".join("'" + label.replace("'", "''") + "'" for label in labels)

    def literal(chance: Chance) -> str:
        if family == "ENUM":
            # an unknown label is the empty one of number 0
            return _characters(chance.choice(labels)) if chance.random() < 0.95 else "'none of them'"
        return _characters(",".join(sorted(chance.sample(labels, chance.randint(0, min(4, len(labels)))))))

    return Kind(family, f"{family}({shown}) CHARACTER SET {charset}", literal, charset)


def _document(chance: Chance, depth: int = 0) -> object:
    if depth < 3 and chance.random() < 0.5:
        if chance.random() < 0.5:
            return [_document(chance, depth + 1) for _ in range(chance.randrange(5))]
        return {chance.choice(["a", "bb", "ключ", "", "long " * 9]): _document(chance, depth + 1) for _ in range(chance.randrange(4))}
    return chance.choice(
        [
            *(None, True, False, 0, -1, 32_767, -32_769, 65_535, 1 << 31, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1, 1.5, -2.5e-7, 1e100),
            *("", "text", 'ž 中 😀 " \\ \n', "x" * 200, "y" * 70_000 if chance.random() < 0.02 else "z"),
        ]
    )


def _json(chance: Chance) -> str:
    if chance.random() < 0.2:
        return (
            "JSON_OBJECT('d', CAST('2020-02-03' AS DATE), 't', CAST('12:34:56.789' AS TIME(3)), 'm', CAST('1999-12-31 23:59:59.123456' "
            f"AS DATETIME(6)), 'n', CAST({chance.randint(-(10**9), 10**9)}.{chance.randrange(1000):03} AS DECIMAL(20,3)))"
        )
    return f"CAST({_characters(json.dumps(_document(chance), ensure_ascii=False))} AS JSON)"


def _shape(chance: Chance) -> str:
    def points(count: int) -> str:
        return ", ".join(f"{chance.uniform(-180, 180)!r} {chance.randint(-90, 90)}" for _ in range(count))

    return f"ST_GeomFromText('{chance.choice([f'POINT({points(1)})', f'LINESTRING({points(3)})', f'MULTIPOINT({points(2)})'])}')"


def kinds(chance: Chance) -> Iterator[Kind]:
    """Every type once."""
    for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)):
        yield Kind("integer", name, _integer(bits, unsigned=False))
        yield Kind("integer", f"{name} UNSIGNED", _integer(bits, unsigned=True))
    sizes = [(p, chance.randint(0, min(30, p))) for p in (4, 20, 47)]
    for precision, scale in (
        (1, 0),
        (65, 30),
        (30, 30),
        (9, 9),
        (10, 0),
        (18, 9),
        *sizes,
    ):
        yield Kind("DECIMAL", f"DECIMAL({precision},{scale})", _decimal(precision, scale, unsigned=False))
    yield Kind("DECIMAL", "DECIMAL(12,4) UNSIGNED", _decimal(12, 4, unsigned=True))
    yield Kind("FLOAT", "FLOAT", _float)
    yield Kind("DOUBLE", "DOUBLE", _double)
    for bits in (1, 8, 9, 17, 64):
        yield Kind("BIT", f"BIT({bits})", lambda chance, bits=bits: f"b'{chance.getrandbits(bits):b}'", digits=bits)
    yield Kind("YEAR", "YEAR", lambda chance: str(chance.choice([0, 1901, 2155, chance.randint(1901, 2155)])))
    yield Kind("DATE", "DATE", _date)
    for digits in range(7):
        yield Kind("DATETIME", f"DATETIME({digits})", _partial_moment(digits), digits=digits)
        yield Kind("TIMESTAMP", f"TIMESTAMP({digits}) NULL", _moment(digits, datetime(1970, 1, 2), datetime(2038, 1, 19)), digits=digits)
        yield Kind("TIME", f"TIME({digits})", _time(digits), digits=digits)
    for charset in LETTERS:
        yield Kind("text", f"CHAR(9) CHARACTER SET {charset}", _text(charset, 9), charset)
        yield Kind("text", f"VARCHAR(90) CHARACTER SET {charset}", _text(charset, 90), charset)
    yield Kind("text", "CHAR(255)", _text("utf8mb4", 255), "utf8mb4")
    yield Kind("text", "VARCHAR(400)", _text("utf8mb4", 400), "utf8mb4")
    for size, limit in (("TINY", 60), ("", 700), ("MEDIUM", 70_000), ("LONG", 300)):
        yield Kind("text", f"{size}TEXT", _text("utf8mb4", min(limit, 2_000)), "utf8mb4")
        yield Kind("text", f"{size}TEXT CHARACTER SET latin2", _text("latin2", min(limit, 2_000)), "latin2")
        yield Kind("bytes", f"{size}BLOB", _octets(min(limit, 2_000)))
    for limit in (1, 20, 255):
        yield Kind("BINARY", f"BINARY({limit})", _octets(limit))
        yield Kind("bytes", f"VARBINARY({limit})", _octets(limit))
    yield Kind("bytes", "VARBINARY(300)", _octets(300))
    yield _labelled("ENUM", ("a", "b,c", "it's", "žluť"), "utf8mb4")
    yield _labelled("ENUM", tuple(f"label {i}" for i in range(300)), "utf8mb4")
    yield _labelled("ENUM", ("x", "é"), "latin1")
    yield _labelled("SET", ("p", "q", "r", "ž"), "utf8mb4")
    yield _labelled("SET", ("p", "привет"), "cp1251")
    for count in (9, 17, 33, 64):
        yield _labelled("SET", tuple(f"m{i}" for i in range(count)), "ascii")
    for _ in range(4):
        yield Kind("JSON", "JSON", _json)
    for name in ("GEOMETRY", "GEOMETRY", "GEOMETRY"):
        yield Kind("bytes", name, _shape)
    yield Kind("bytes", "POINT", lambda chance: f"POINT({chance.randint(-9, 9)}, {chance.random()!r})")


#: Types of which the other reader cannot read a row, nor anything else of the row's table; the server alone is asked.
LEFT_OUT = {
    "VECTOR": (
        Kind("bytes", "VECTOR(3)", lambda chance: f"TO_VECTOR('[{chance.randint(-9, 9)}, 0.5, {chance.random()!r}]')"),
        "an unknown type to it, whose table map it misreads from there on",
    ),
    "times of more than a day in JSON": (
        Kind("JSON", "JSON", lambda chance: f"JSON_ARRAY(CAST('{chance.choice(['-', ''])}{chance.randint(24, 837)}:01:02.5' AS TIME(1)))"),
        "it makes them times of a day, which fails",
    ),
}


def tables(chance: Chance, count: int) -> Iterator[tuple[Generated, bool]]:
    """Tables, and whether the other reader can read them: all types come before one comes again."""
    deck: list[Kind] = []
    for number in range(count):
        chosen: list[Kind] = []
        for _ in range(chance.randint(5, 13)):
            if not deck:
                deck = list(kinds(chance))
                chance.shuffle(deck)
            chosen.append(deck.pop())
        yield Generated(f"t{number}", tuple(chosen)), True
    for number, (kind, _) in enumerate(LEFT_OUT.values()):
        yield Generated(f"alone{number}", (kind,)), False
