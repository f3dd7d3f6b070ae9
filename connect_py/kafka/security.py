"""Java's `security.protocol`, `sasl.*` and `ssl.*` client properties as librdkafka's. Files are named; stores are looked into.

librdkafka takes PEM files and texts and PKCS#12 key stores, and no Java key stores. A PKCS#12 trust store becomes a PEM file; the
content decides which it is, since Java's default type, JKS, opens PKCS#12 too. A real JKS file is refused with a text that says how to
convert it (`SslConfigs.java`, KIP-651 for PEM). A JAAS line is read as `JaasConfig.java` reads it: a login module, a flag, options.
Secrets go from one mapping to another and appear in no message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from connect_py.errors import ConfigError
from connect_py.tls import CONVERT_TO_PEM, is_java_store, pem_file

#: One token of a JAAS line: a quoted text with backslash escapes, or a bare word; `=` and `;` stand alone.
_JAAS_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'|([=;])|([^\s=;"\']+)')

#: JaasUtils.DISALLOWED_LOGIN_MODULES_DEFAULT: modules that fetch what they run from an address in their options. Nothing here would load
#: them; a configuration that holds one is refused all the same, as Kafka's clients refuse it.
_DISALLOWED_MODULES = frozenset({"com.sun.security.auth.module.JndiLoginModule", "com.sun.security.auth.module.LdapLoginModule"})

#: What may stand in a shell's command line: the default of `sasl.kerberos.kinit.cmd` has the principal bare and the key tab in quotes.
_PLAIN = {"principal": re.compile(r"[\w./@-]+", re.ASCII), "keyTab": re.compile(r"[\w./@ :=+,-]+", re.ASCII)}


def security_settings(properties: Mapping[str, str]) -> dict[str, object]:
    """Return the librdkafka settings for a connection's security.

    Raises:
        ConfigError: a JAAS line that cannot be read, or a store of a type that cannot be used.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper() or "PLAINTEXT"
    found: dict[str, object] = {"security.protocol": protocol}
    if protocol.startswith("SASL"):
        found.update(_sasl(properties))
    if protocol.endswith("SSL"):
        found.update(_ssl(properties))
    return found


def jaas_options(line: str) -> tuple[str, dict[str, str]]:
    """Return the login module's class name and its options of a `sasl.jaas.config` line such as `…PlainLoginModule required username="u";`.

    Raises:
        ConfigError: malformed; the text doesn't repeat the line, which holds a password.
    """
    tokens: list[tuple[str, bool]] = []
    for match in _JAAS_TOKEN.finditer(line):
        quoted = match.group(1) if match.group(1) is not None else match.group(2)
        if quoted is not None:
            tokens.append((re.sub(r"\\(.)", r"\1", quoted), True))
        else:
            tokens.append((match.group(3) or match.group(4), False))
    while tokens and tokens[-1] == (";", False):
        tokens.pop()
    if len(tokens) < 2 or (len(tokens) - 2) % 3:
        raise ConfigError("Value of sasl.jaas.config is no login module, control flag and list of key=\"value\" options ended by ';'.")
    options: dict[str, str] = {}
    for at in range(2, len(tokens), 3):
        (key, _), equals, (value, _) = tokens[at : at + 3]
        if equals != ("=", False):
            raise ConfigError(f"Value of sasl.jaas.config has no '=' after option number {at // 3 + 1}.")
        options[key] = value
    return tokens[0][0], options


def refuse_login_module(line: str) -> None:
    """Raises ConfigError when the first login module of a JAAS line is one that Kafka does not allow (`JaasContext.java`)."""
    module = next((found.group(4) or found.group(1) or found.group(2) or "" for found in _JAAS_TOKEN.finditer(line)), "").strip()
    if module in _DISALLOWED_MODULES:
        raise ConfigError(f"{module} is not allowed.")


def _sasl(properties: Mapping[str, str]) -> dict[str, object]:
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip() or "GSSAPI"
    found: dict[str, object] = {"sasl.mechanism": mechanism}
    line = properties.get("sasl.jaas.config", "")
    refuse_login_module(line)
    options = jaas_options(line)[1] if line.strip() else {}
    if mechanism == "GSSAPI":
        found["sasl.kerberos.service.name"] = properties.get("sasl.kerberos.service.name") or options.get("serviceName") or "kafka"
        for option, setting in (("principal", "sasl.kerberos.principal"), ("keyTab", "sasl.kerberos.keytab")):
            if option in options:
                found[setting] = _plain(option, options[option])
    elif mechanism == "OAUTHBEARER":
        found.update(_oauth(properties, options))
    else:
        for option, setting in (("username", "sasl.username"), ("password", "sasl.password")):
            if option not in options:
                raise ConfigError(f"sasl.mechanism={mechanism} needs the option '{option}' in sasl.jaas.config.")
            found[setting] = options[option]
    return found


def _plain(option: str, value: str) -> str:
    """Return a value that librdkafka puts into the command line of `kinit` (`sasl.kerberos.kinit.cmd`). Raises ConfigError."""
    if not _PLAIN[option].fullmatch(value):
        raise ConfigError(
            f"The option '{option}' of sasl.jaas.config holds a character that has a meaning in a command line. Letters, digits and "
            "_ . / @ - are allowed (in keyTab also blanks and : = + ,)."
        )
    return value


#: Options of Strimzi's OAuth library for logins that librdkafka does not have.
_OTHER_GRANTS = frozenset(
    {
        "oauth.access.token",
        "oauth.refresh.token",
        "oauth.password.grant.username",
        "oauth.password.grant.password",
        "oauth.client.assertion",
    }
)


def _oauth(properties: Mapping[str, str], options: Mapping[str, str]) -> dict[str, object]:
    endpoint = properties.get("sasl.oauthbearer.token.endpoint.url") or options.get("oauth.token.endpoint.uri")
    grants = sorted(_OTHER_GRANTS & options.keys())
    if grants:
        raise ConfigError(
            f"The option {grants[0]} of sasl.jaas.config asks for a kind of OAuth login that this worker does not have. It logs in with a "
            "client id and a client secret (oauth.client.id, oauth.client.secret, oauth.token.endpoint.uri)."
        )
    if not endpoint:
        subject = options.get("unsecuredLoginStringClaim_sub")
        if subject is None:
            raise ConfigError("sasl.mechanism=OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url.")
        return {"enable.sasl.oauthbearer.unsecure.jwt": True, "sasl.oauthbearer.config": f"principal={subject}"}
    found: dict[str, object] = {"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": endpoint}
    names = (
        ("clientId", "oauth.client.id", "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
        ("clientSecret", "oauth.client.secret", "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
        ("scope", "oauth.scope", "sasl.oauthbearer.scope", "sasl.oauthbearer.scope"),
    )
    for option, strimzi, java, setting in names:
        value = properties.get(java) or options.get(option) or options.get(strimzi)
        if value:
            found[setting] = value
    if options.get("oauth.ssl.truststore.location"):
        if options.get("oauth.ssl.truststore.type", "").upper() != "PEM":
            raise ConfigError(
                "The option oauth.ssl.truststore.location of sasl.jaas.config must name a PEM file (oauth.ssl.truststore.type)."
            )
        found["https.ca.location"] = options["oauth.ssl.truststore.location"]
    return found


def _ssl(properties: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {}
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    found["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    found.update(_trust(properties))
    found.update(_key(properties))
    if properties.get("ssl.key.password"):
        found["ssl.key.password"] = properties["ssl.key.password"]
    return found


def _trust(properties: Mapping[str, str]) -> dict[str, object]:
    kind = properties.get("ssl.truststore.type", "JKS").strip().upper()
    if properties.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location", "").strip()
    if not location:
        return {}
    if kind == "PEM":
        return {"ssl.ca.location": location}
    if not is_java_store(location):
        return {"ssl.ca.location": pem_file(location, properties.get("ssl.truststore.password"))}
    raise ConfigError(
        f"The trust store '{location}' (ssl.truststore.location) is of type {kind}, which cannot be read here. "
        + CONVERT_TO_PEM.format(prefix="ssl.truststore")
    )


def _key(properties: Mapping[str, str]) -> dict[str, object]:
    kind = properties.get("ssl.keystore.type", "JKS").strip().upper()
    if properties.get("ssl.keystore.key"):
        return {"ssl.key.pem": properties["ssl.keystore.key"], "ssl.certificate.pem": properties.get("ssl.keystore.certificate.chain", "")}
    location = properties.get("ssl.keystore.location", "").strip()
    if not location:
        return {}
    if kind == "PEM":
        return {"ssl.key.location": location, "ssl.certificate.location": location}
    if kind == "PKCS12" or not is_java_store(location):
        return {"ssl.keystore.location": location, "ssl.keystore.password": properties.get("ssl.keystore.password", "")}
    raise ConfigError(
        f"The key store '{location}' (ssl.keystore.location) is of type {kind}, which cannot be read here. "
        + CONVERT_TO_PEM.format(prefix="ssl.keystore")
    )
