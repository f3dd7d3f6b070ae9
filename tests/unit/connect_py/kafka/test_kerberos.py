"""A Kerberos principal becomes a part of a shell's command line (`sasl.kerberos.kinit.cmd` of librdkafka)."""

import pytest

from connect_py.errors import ConfigError
from connect_py.kafka.security import security_settings

LINE = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="{keytab}" principal="{principal}";'


def settings(principal: str, keytab: str = "/etc/connect key.keytab") -> dict[str, object]:
    line = LINE.format(principal=principal, keytab=keytab)
    return security_settings({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": line})


def test_a_principal_and_a_key_tab_are_taken() -> None:
    found = settings("connect/host-1.example@EXAMPLE.COM")
    assert found["sasl.kerberos.principal"] == "connect/host-1.example@EXAMPLE.COM"
    assert found["sasl.kerberos.keytab"] == "/etc/connect key.keytab"


@pytest.mark.parametrize("principal", ["x; touch /tmp/x", "$(id)", "a`id`", "a|b", "a b", "é", "a\nb", "%{x}"])
def test_a_principal_with_a_meaning_for_a_shell_is_refused(principal: str) -> None:
    with pytest.raises(ConfigError, match="principal") as refused:
        settings(principal)
    assert principal not in str(refused.value)


@pytest.mark.parametrize("keytab", ["/k$(id)", "/k`id`", "/k\\\\", "/k'x"])
def test_a_key_tab_with_a_meaning_for_a_shell_is_refused(keytab: str) -> None:
    with pytest.raises(ConfigError, match="keyTab"):
        settings("connect", keytab)
