"""MySQL's character sets as Python decoders. Bytes that are no character become U+FFFD, as in Java.

For single-byte sets, `TABLES` lists where MySQL differs from the nearest codec (`share/charsets/*.xml` of MySQL). `ujis` and `eucjpms` are
decoded here because Python's codec lacks parts of MySQL's tables (`strings/ctype-ujis.cc`, `strings/ctype-eucjpms.cc`).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

#: The codec, and characters from a byte on.
TABLES: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "armscii8": (
        "latin-1",
        {
            0xA1: "❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'",
        },
    ),
    "dec8": (
        "latin-1",
        {
            0xA8: "¤",
            0xD7: "Œ",
            0xDD: "Ÿ",
            0xF7: "œ",
            0xFD: "ÿ",
        },
    ),
    "hp8": (
        "latin-1",
        {
            0xA1: "ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíøæÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠšÚŸÿÞþ·µ¶¾—¼½ªº«■»±",
        },
    ),
    "geostd8": (
        "cp1252",
        {
            0xC0: "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ",
            0xFD: "№",
        },
    ),
    "keybcs2": (
        "cp437",
        {
            0x80: "Č",
            0x83: "ď",
            0x85: "ĎŤčěĚĹÍľĺ",
            0x8F: "Á",
            0x91: "žŽ",
            0x95: "ÓůÚý",
            0x9B: "ŠĽÝŘť",
            0xA4: "ňŇŮÔšřŕŔ",
        },
    ),
    "swe7": (
        "ascii",
        {
            0x40: "É",
            0x5B: "ÄÖÅÜ",
            0x60: "é",
            0x7B: "äöåü",
        },
    ),
    "cp866": (
        "cp866",
        {
            0xFC: "ⁿ²",
        },
    ),
    "greek": (
        "iso8859-7",
        {
            0xA1: "ʽʼ",
        },
    ),
    "hebrew": (
        "iso8859-8",
        {
            0xAF: "‾",
        },
    ),
    "koi8u": (
        "koi8-u",
        {
            0x95: "•",
        },
    ),
}


_FIRST, _LAST = 0xA1, 0xFE
_CELLS = _LAST - _FIRST + 1
#: Ahead of characters of the second plane.
_SECOND = 0x8F
#: Rows from which on characters are the user's own, and the first of them in each plane.
_OWN_ROW, _OWN = 0xF5, {False: 0xE000, True: 0xE3AC}

#: NEC's characters, row 13 of the first plane.
_NEC = (
    "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ\ufffd㍉㌔㌢㍍㌘㌧㌃㌶㍑㍗㌍㌦㌣㌫㍊㌻㎜㎝㎞㎎㎏㏄㎡\ufffd\ufffd\ufffd\ufffd"
    "\ufffd\ufffd\ufffd\ufffd㍻〝〟№㏍℡㊤㊥㊦㊧㊨㈱㈲㈹㍾㍽㍼≒≡∫∮∑√⊥∠∟⊿∵∩∪\ufffd\ufffd"
)
#: IBM's, at the end of row 83 and in row 84 of the second plane. Numbers stand for compatibility ideographs, which editors change.
_IBM = (
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ＇＂㈱№℡炻仼僴凬匇"
    "匤\ufa0e咊坙\ufa0f\ufa10增寬峵嵓\ufa11德悅愠敎昻晥\ufa12\uf929栁\ufa13\ufa14橫櫢淸淲瀨\ufa15\ufa16甁"
    "皂皞\ufa17礰\ufa18\ufa19\ufa1a\ufa1b竧\ufa1c\ufa1d綠緖\ufa1e荢\ufa1f薰\ufa20\ufa21蠇\ufa22譿賴赶\ufa23\ufa24\ufa25郞\ufa26鄕"
    "\ufa27\ufa28閒\uf9dc\ufa29霻靍靑\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d黑"
)
_IBM_PLACE = (0xF3 - _FIRST) * _CELLS + 0xF3 - _FIRST
_NEC_ROW = 0xAD

#: Where Microsoft's reading of JIS X 0208, which eucjpms follows, differs from the codec's.
_MICROSOFT = str.maketrans("〜‖−¢£¬¦", "～∥－￠￡￢￤")  # that is the point
#: The second plane's tilde is the first one's. No other character's end looks like this lead.
_TILDE, _WAVE = b"\x8f\xa2\xb7", b"\xa1\xc1"


def ujis(data: bytes) -> str:
    """Decode `ujis`. Never fails; what is no character becomes U+FFFD."""
    return data.decode("euc-jp", "connect_py.ujis").replace("\uff3c", "\\")  # its full-width backslash is a backslash


def eucjpms(data: bytes) -> str:
    """Decode `eucjpms`. Never fails; what is no character becomes U+FFFD."""
    return data.replace(_TILDE, _WAVE).decode("euc-jp", "connect_py.eucjpms").translate(_MICROSOFT)


def _character(data: bytes, at: int, *, microsoft: bool) -> tuple[str, int]:
    """Return the character at a position where the codec knows none, and the position after it."""
    second = data[at] == _SECOND
    begin = at + second
    cells = data[begin : begin + 2]
    if len(cells) < 2 or min(cells) < _FIRST or max(cells) > _LAST:
        return "\ufffd", at + 1
    row, cell = cells[0], cells[1] - _FIRST
    if row >= _OWN_ROW:
        return chr(_OWN[second] + (row - _OWN_ROW) * _CELLS + cell), begin + 2
    if microsoft and second and (ibm := (row - _FIRST) * _CELLS + cell - _IBM_PLACE) >= 0:
        return _IBM[ibm], begin + 2
    if microsoft and not second and row == _NEC_ROW:
        return _NEC[cell], begin + 2
    return "\ufffd", begin + 2


def _handler(error: UnicodeError, *, microsoft: bool) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _character(error.object, error.start, microsoft=microsoft)


codecs.register_error("connect_py.ujis", lambda error: _handler(error, microsoft=False))
codecs.register_error("connect_py.eucjpms", lambda error: _handler(error, microsoft=True))


#: `latin1` is cp1252, whose five holes MySQL fills with the control characters of the same numbers.
_LATIN1 = "".join(chr(code) if code in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else bytes([code]).decode("cp1252") for code in range(256))
_CODECS = {
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ascii": "ascii",
    "binary": "latin-1",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "koi8r": "koi8-r",
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "euckr": "cp949",
    "cp932": "cp932",
    "tis620": "tis-620",
    "macroman": "mac-roman",
    "macce": "mac-latin2",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}


def _of_eten(error: UnicodeError) -> tuple[str, int]:
    """Decode the seven ideographs (F9D6 to F9DC) that big5 has in MySQL and Java, and cp950 in Python."""
    assert isinstance(error, UnicodeDecodeError)
    try:
        return error.object[error.start : error.start + 2].decode("cp950"), error.start + 2
    except UnicodeDecodeError:
        return "\ufffd", error.end


codecs.register_error("connect_py.big5", _of_eten)

#: Sets that need more than a codec.
_OTHERS: Mapping[str, Callable[[bytes], str]] = {
    "big5": lambda data: data.decode("big5", "connect_py.big5"),
    "ujis": ujis,
    "eucjpms": eucjpms,
    "sjis": lambda data: data.decode("shift_jis", "replace").replace("\uff3c", "\\"),  # its full-width backslash is a backslash
}


def is_known(charset: str) -> bool:
    """Return whether there is a decoder; others are read as UTF-8, and the caller warns."""
    name = charset.lower()
    return name in _CODECS or name in _OTHERS or name in TABLES or name == "latin1"


@cache
def decoder(charset: str) -> Callable[[bytes], str]:
    """Return the function that decodes stored bytes, which never fails."""
    name = charset.lower()
    table = _table(name)
    if table:
        return lambda data: data.decode("latin-1").translate(table)
    if name in _OTHERS:
        return _OTHERS[name]
    codec = _CODECS.get(name, "utf-8")
    return lambda data: data.decode(codec, "replace")


@cache
def _table(name: str) -> str:
    """Return 256 characters; none for sets that a codec reads as it is."""
    if name == "latin1":
        return _LATIN1
    if name not in TABLES:
        return ""
    codec, runs = TABLES[name]
    found = [bytes([code]).decode(codec, "replace") for code in range(256)]
    for first, characters in runs.items():
        found[first : first + len(characters)] = characters
    return "".join(found)
