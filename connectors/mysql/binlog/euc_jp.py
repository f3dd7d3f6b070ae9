"""The Japanese sets `ujis` and `eucjpms`: what Python's codec lacks of MySQL's tables (strings/ctype-ujis.cc, ctype-eucjpms.cc)."""

from __future__ import annotations

import codecs

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
    """Text of `ujis`. Never fails; what is no character becomes U+FFFD."""
    return data.decode("euc-jp", "connect_py.ujis").replace("\uff3c", "\\")  # its full-width backslash is a backslash


def eucjpms(data: bytes) -> str:
    """Text of `eucjpms`. Never fails; what is no character becomes U+FFFD."""
    return data.replace(_TILDE, _WAVE).decode("euc-jp", "connect_py.eucjpms").translate(_MICROSOFT)


def _character(data: bytes, place: int, *, microsoft: bool) -> tuple[str, int]:
    """The character at a place where the codec knows none, and the place behind it."""
    second = data[place] == _SECOND
    begin = place + second
    cells = data[begin : begin + 2]
    if len(cells) < 2 or min(cells) < _FIRST or max(cells) > _LAST:
        return "\ufffd", place + 1
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
