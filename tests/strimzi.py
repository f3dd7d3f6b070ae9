"""Properties as the Strimzi operator writes them for a Connect pod (`KafkaConnectConfigurationBuilder`), one set for each way to log in.

Variables stand where the operator puts them: environment, mounted files, Secrets by the API server.
"""

from __future__ import annotations

_PROVIDERS = "org.apache.kafka.common.config.provider"

#: What every file has; `{bootstrap}` and `{folder}`, that of mounted files, are for the test.
COMMON = f"""\
bootstrap.servers={{bootstrap}}
config.providers=strimzienv,strimzifile,strimzidir,strimzisecrets
config.providers.strimzienv.class={_PROVIDERS}.EnvVarConfigProvider
config.providers.strimzienv.param.allowlist.pattern=.*
config.providers.strimzifile.class={_PROVIDERS}.FileConfigProvider
config.providers.strimzidir.class={_PROVIDERS}.DirectoryConfigProvider
config.providers.strimzidir.param.allowed.paths={{folder}}
config.providers.strimzisecrets.class=io.strimzi.kafka.KubernetesSecretConfigProvider
group.id=my-connect
offset.storage.topic=my-connect-offsets
config.storage.topic=my-connect-configs
status.storage.topic=my-connect-status
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
rest.advertised.host.name=${{{{strimzienv:ADVERTISED_HOSTNAME}}}}
rest.advertised.port=8083
plugin.path=/opt/kafka/plugins
"""

TLS = (
    "ssl.truststore.certificates=${strimzisecrets:shop/cluster-ca:*.crt}\\n${strimzisecrets:shop/other-ca:*.crt}",
    "ssl.truststore.type=PEM",
)
_MUTUAL = (
    "ssl.keystore.certificate.chain=${strimzisecrets:shop/user:user.crt}",
    "ssl.keystore.key=${strimzisecrets:shop/user:user.key}",
    "ssl.keystore.type=PEM",
)
_MODULES = "org.apache.kafka.common.security"
_PASSWORD_LINE = (
    f"sasl.jaas.config={_MODULES}.%s required "
    "username=${strimzienv:KAFKA_CONNECT_SASL_USERNAME} password=${strimzidir:{folder}/user:password};"
)
_OAUTH_LINE = (
    f"sasl.jaas.config={_MODULES}.oauthbearer.OAuthBearerLoginModule required "
    "${strimzienv:KAFKA_CONNECT_OAUTH_CONFIG} oauth.client.secret=${strimzienv:KAFKA_CONNECT_OAUTH_CLIENT_SECRET} "
    'oauth.ssl.truststore.location="/opt/kafka/oauth-certs/ca/ca.crt" oauth.ssl.truststore.type="PEM";'
)

#: Way to log in → security protocol and lines.
LOGINS: dict[str, tuple[str, tuple[str, ...]]] = {
    "none": ("PLAINTEXT", ()),
    "tls": ("SSL", TLS),
    "mutual tls": ("SSL", TLS + _MUTUAL),
    "scram": ("SASL_SSL", (*TLS, "sasl.mechanism=SCRAM-SHA-512", _PASSWORD_LINE % "scram.ScramLoginModule")),
    "plain": ("SASL_PLAINTEXT", ("sasl.mechanism=PLAIN", _PASSWORD_LINE % "plain.PlainLoginModule")),
    "oauth": (
        "SASL_PLAINTEXT",
        (
            "sasl.mechanism=OAUTHBEARER",
            _OAUTH_LINE,
            "sasl.login.callback.handler.class=io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
        ),
    ),
}


def property_file(bootstrap: str, folder: object, protocol: str, lines: tuple[str, ...]) -> str:
    """Return a worker's properties; each line of the login stands once for the worker and once for each kind of client, as there."""
    every = [f"security.protocol={protocol}", *(line.replace("{folder}", str(folder)) for line in lines)]
    prefixed = (prefix + line for line in every for prefix in ("", "producer.", "consumer.", "admin."))
    return COMMON.format(bootstrap=bootstrap, folder=folder) + "\n".join(prefixed) + "\n"
