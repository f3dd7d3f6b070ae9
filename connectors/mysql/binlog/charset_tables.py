"""Where MySQL's character sets of one byte differ from the codec that is nearest to them (its `share/charsets/*.xml`)."""

from __future__ import annotations

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
