"""Keys of incremental snapshots in offsets, against what `java.io.ObjectOutputStream` of JDK 17 wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect_py.errors import ConfigError
from connectors.engine.java_object import JavaValue, decode_key, encode_key

HEAD = "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870"
INTEGER = "7200116a6176612e6c616e672e496e746567657212e2a0a4f781873802000149000576616c7565"
NUMBER = "787200106a6176612e6c616e672e4e756d62657286ac951d0b94e08b0200007870"
BIG_DECIMAL = (
    "7200146a6176612e6d6174682e426967446563696d616c54c71557f981284f0300024900057363616c654c0006696e7456616c"
    "7400164c6a6176612f6d6174682f426967496e74656765723b"
)
BIG_INTEGER = (
    "7200146a6176612e6d6174682e426967496e74656765728cfc9f1fa93bfb1d030006490008626974436f756e744900096269744c656e67746849001366697273744e6f6e"
    "7a65726f427974654e756d49000c6c6f776573745365744269744900067369676e756d5b00096d61676e69747564657400025b427871007e0004"
)
TIME_SER = "72000d6a6176612e74696d652e536572955d84ba1b2248b20c00007870"
TIMESTAMP = (
    "7200126a6176612e73716c2e54696d657374616d702618d5c80153bf650200014900056e616e6f73"
    "7872000e6a6176612e7574696c2e44617465686a81014b5974190300007870"
)


def integer(text: str) -> JavaValue:
    return JavaValue("java.lang.Integer", text)


VECTORS = [
    (None, "aced000570"),
    ([integer("1")], f"{HEAD}0000000173{INTEGER}{NUMBER}00000001"),
    ([integer("1"), integer("2")], f"{HEAD}0000000273{INTEGER}{NUMBER}000000017371007e000200000002"),
    ([None], f"{HEAD}0000000170"),
    # as Debezium's MySQL connector stored a DATE, a TIME, a negative TIME with a fraction and a DATETIME(3)
    ([JavaValue("java.time.LocalDate", "1969-12-31")], f"{HEAD}0000000173{TIME_SER}770703000007b10c1f78"),
    ([JavaValue("java.time.Duration", "10:00:00")], f"{HEAD}0000000173{TIME_SER}770d010000000000008ca00000000078"),
    ([JavaValue("java.time.Duration", "-00:00:00.5")], f"{HEAD}0000000173{TIME_SER}770d01ffffffffffffffff1dcd650078"),
    ([JavaValue("java.sql.Timestamp", "2020-01-01 00:00:00.5")], f"{HEAD}0000000173{TIMESTAMP}77080000016f5e66e800781dcd6500"),
    ([JavaValue("java.lang.String", "abc")], f"{HEAD}00000001740003616263"),
    (
        [JavaValue("java.util.UUID", "00112233-4455-6677-8899-aabbccddeeff")],
        f"{HEAD}000000017372000e6a6176612e7574696c2e55554944bc9903f7986d852f0200024a000c6c65617374536967426974734a000b6d6f73745369674269747378"
        "708899aabbccddeeff0011223344556677",
    ),
    (
        [JavaValue("org.bson.types.ObjectId", "5f1b2c3d4e5f6a7b8c9d0e05")],
        f"{HEAD}000000017372002a6f72672e62736f6e2e74797065732e4f626a65637449642453657269616c697a6174696f6e50726f787900000000000000010200015b0005"
        "62797465737400025b427870757200025b42acf317f8060854e002000078700000000c5f1b2c3d4e5f6a7b8c9d0e05",
    ),
    (
        [JavaValue("org.bson.types.Decimal128", "5.10")],
        f"{HEAD}00000001737200196f72672e62736f6e2e74797065732e446563696d616c3132383f6f5bf7c3c19b7f0200024a0004686967684a00036c6f77{NUMBER}"
        "303c00000000000000000000000001fe",
    ),
    (
        [JavaValue("java.sql.Date", "2020-02-03")],
        f"{HEAD}000000017372000d6a6176612e73716c2e4461746514fa46683f3566970200007872000e6a6176612e7574696c2e44617465686a81014b5974190300007870"
        "7708000001700858c40078",
    ),
    (
        [JavaValue("java.math.BigDecimal", "1"), JavaValue("java.math.BigDecimal", "2.5")],
        f"{HEAD}0000000273{BIG_DECIMAL}{NUMBER}0000000073{BIG_INTEGER}fffffffffffffffffffffffefffffffe00000001757200025b42acf317f8060854e0020000"
        "7870000000010178787371007e0002000000017371007e0006fffffffffffffffffffffffefffffffe000000017571007e000900000001197878",
    ),
    (
        [
            integer("1"),
            JavaValue("java.lang.String", "a"),
            None,
            JavaValue("java.lang.Long", "2"),
            JavaValue("java.lang.String", "b"),
            integer("3"),
        ],
        f"{HEAD}0000000673{INTEGER}{NUMBER}0000000174000161707372000e6a6176612e6c616e672e4c6f6e673b8be490cc8f23df0200014a000576616c75657871007e"
        "00030000000000000002740001627371007e000200000003",
    ),
    (
        [JavaValue("java.lang.Boolean", "t")],
        f"{HEAD}00000001737200116a6176612e6c616e672e426f6f6c65616ecd207280d59cfaee0200015a000576616c7565787001",
    ),
]


@pytest.mark.parametrize(("key", "hexadecimal"), VECTORS)
def test_a_key_is_written_and_read_as_java_does(key: list[JavaValue | None] | None, hexadecimal: str) -> None:
    assert encode_key(key) == hexadecimal
    assert decode_key(hexadecimal) == key
    assert decode_key(hexadecimal.upper()) == key


def test_a_second_mention_of_one_java_object_is_read() -> None:
    assert decode_key(f"{HEAD}0000000273{INTEGER}{NUMBER}0000000171007e0004") == [integer("1"), integer("1")]


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**31), 2**31 - 1).map(lambda n: JavaValue("java.lang.Integer", str(n))),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: JavaValue("java.lang.Long", str(n))),
    st.text().map(lambda text: JavaValue("java.lang.String", text)),
    st.uuids().map(lambda found: JavaValue("java.util.UUID", str(found))),
    st.dates().map(lambda found: JavaValue("java.sql.Date", found.isoformat())),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=4).map(
        lambda found: JavaValue("java.math.BigDecimal", f"{found or abs(found):f}")
    ),
    st.booleans().map(lambda found: JavaValue("java.lang.Boolean", "t" if found else "f")),
)


@given(st.lists(VALUES, max_size=6))
def test_every_key_comes_back(key: list[JavaValue | None]) -> None:
    assert decode_key(encode_key(key)) == key


@pytest.mark.parametrize("text", ["", "zz", "aced000575", "00", HEAD + "000000017371007e0099"])
def test_what_is_no_key_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(ConfigError, match="PATCH offsets"):
        decode_key(text)


def test_keys_of_bytes_come_back_and_those_of_pgjdbcs_objects_are_texts() -> None:
    """As Debezium 3.6 stored them for a bytea and an inet key."""
    stored = f"{HEAD}00000001757200025b42acf317f8060854e0020000787000000002ff00"
    assert decode_key(stored) == [JavaValue("[B", "\\xff00")]
    assert encode_key([JavaValue("[B", "\\xff00")]) == stored
    inet = (
        "aced0005757200135b4c6a6176612e6c616e672e4f626a6563743b90ce589f1073296c0200007870000000017372001c6f72672e706f737467726573716c2e7574696c2e"
        "50476f626a6563744bf895caac6f64440200024c0004747970657400124c6a6176612f6c616e672f537472696e673b4c000576616c756571007e00037870740004696e65"
        "7474000b3139322e3136382e302e31"
    )
    assert decode_key(inet) == [JavaValue("java.lang.String", "192.168.0.1")]


TOO_LATE = TIMESTAMP + "7870770800007f016f5e66e87800000000"


@pytest.mark.parametrize(
    "key", [f"{HEAD}0000000173{TOO_LATE}", f"{HEAD}000000017571007e000000000000", f"{HEAD}000000017371007e000100000001"]
)
def test_a_key_of_parts_that_no_key_has_is_refused(key: str) -> None:
    """A moment after the year 9999, an array in the array, and an object of no class."""
    with pytest.raises(ConfigError, match="A key of an incremental snapshot in the stored offset"):
        decode_key(key)


def test_an_object_id_that_holds_no_bytes_is_refused_by_name() -> None:
    proxy = "7372002a6f72672e62736f6e2e74797065732e4f626a656374496424" + b"SerializationProxy".hex() + "0000000000000001020001"
    octets = "5b00056279746573" + "7400025b42" + "78" + "70"
    boolean = "737200116a6176612e6c616e672e426f6f6c65616ecd207280d59cfaee0200015a000576616c7565787001"
    with pytest.raises(ConfigError, match="an ObjectId that is no bytes"):
        decode_key(HEAD + "00000001" + proxy + octets + HEAD[8:] + "00000001" + boolean)
