"""The only home of the schema registry's client (`confluent_kafka.schema_registry`).

It turns the client's failures into the project's: what may pass (no connection, a time-out, 408, 429, 500, 502, 503, 504) is a
`RetriableError`, everything else that the registry refuses is a `DataError` that names the subject
(`AbstractKafkaSchemaSerDe.toKafkaException`). No message holds the address's user info, a token or a password. The client itself repeats
a request up to ``max.retries`` times and remembers what it was answered. One converter owns an instance.

The library is imported when a converter is configured, not with this module: it takes 0.4 s, which processes without a registry are spared.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from connect_py.converters.registry.config import WriteSettings, client_settings
from connect_py.errors import ConfigError, DataError, RetriableError
from connect_py.extras import install_command

T = TypeVar("T")

_PASSING = (408, 429, 500, 502, 503, 504)
_NOT_FOUND = 404


class Reference(NamedTuple):
    """Another schema that a schema uses: the name it is imported by, and where it is registered."""

    name: str
    subject: str
    version: int


class RegistrySchema(NamedTuple):
    """A schema as the registry holds it.

    Attributes:
        kind: AVRO, PROTOBUF or JSON.
    """

    kind: str
    text: str
    references: tuple[Reference, ...] = ()


class Registry:
    """One registry at one or more addresses.

    Args:
        values: parsed properties, see `config.KEYS`.

    Raises:
        ConfigError: an address, a certificate or the credentials cannot be used.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        settings = client_settings(values)
        self._where = ", ".join(_without_user_info(url) for url in settings["url"].split(","))
        self._ids: dict[tuple[str, RegistrySchema], int] = {}
        self._library = _library()
        self._settings = settings
        self._known_ids: dict[RegistrySchema, int] = {}
        self._second: Any = None
        try:
            self._client = self._library.SchemaRegistryClient(settings)
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(f"The schema registry's client cannot be set up: {error}") from None

    def id_of(self, subject: str, schema: RegistrySchema, settings: WriteSettings) -> int:
        """Return the id of a schema under a subject, which is registered if it has to be and may be.

        Raises:
            DataError: it is not compatible with the subject's earlier schemas, or unknown and ``auto.register.schemas`` is false.
            RetriableError: the registry does not answer.
        """
        known = self._ids.get((subject, schema))
        if known is not None:
            return known
        wanted = self._to_client(schema)
        if settings.auto_register:
            found = self._ask(
                f"register the {schema.kind} schema of subject '{subject}'",
                lambda: self._client.register_schema(subject, wanted, settings.normalize),
            )
        else:
            found = self._ask(
                f"find the {schema.kind} schema under subject '{subject}' (auto.register.schemas is false)",
                lambda: self._client.lookup_schema(subject, wanted, settings.normalize).schema_id,
            )
        self._ids[(subject, schema)] = found
        return int(found)

    def latest(self, subject: str) -> tuple[int, RegistrySchema]:
        """Id and schema of a subject's latest version. Raises DataError and RetriableError."""
        found = self._ask(f"get the latest schema of subject '{subject}'", lambda: self._client.get_latest_version(subject))
        schema = _from_client(found.schema)
        self._known_ids[schema] = int(found.schema_id)
        return int(found.schema_id), schema

    def by_id(self, schema_id: int) -> RegistrySchema:
        """Return the schema of an id. Raises DataError and RetriableError."""
        schema = _from_client(self._ask(f"get the schema with id {schema_id}", lambda: self._client.get_schema(schema_id)))
        self._known_ids[schema] = schema_id
        return schema

    def descriptor_of(self, schema: RegistrySchema) -> str:
        """A Protobuf schema that `by_id` or `latest` gave, in base64 of a FileDescriptorProto. Raises DataError and RetriableError."""
        what = f"get the schema with id {self._known_ids[schema]} as a descriptor"
        found = self._ask(what, lambda: self._described.get_schema(self._known_ids[schema], fmt="serialized"))
        return str(found.schema_str)

    def referenced_descriptors(self, schema: RegistrySchema) -> dict[str, str]:
        """As `referenced`, each as the base64 text of a FileDescriptorProto."""
        found: dict[str, str] = {}
        for reference in self._references(schema):
            what = f"get version {reference.version} of subject '{reference.subject}' as a descriptor"
            held = self._ask(what, lambda r=reference: self._described.get_version(r.subject, r.version, fmt="serialized"))  # type: ignore[misc]
            found[reference.name] = str(held.schema.schema_str)
        return found

    @property
    def _described(self) -> Any:
        """A client of its own: the library remembers a schema by its id, whatever form it was asked for in."""
        if self._second is None:
            self._second = self._library.SchemaRegistryClient(self._settings)
        return self._second

    def version_of(self, subject: str, schema: RegistrySchema) -> int | None:
        """Return the version that a schema has under a subject, None when it is not registered there (a topic copied under another name).

        Raises:
            RetriableError: the registry does not answer.
        """
        try:
            found = self._ask(
                f"find the schema under subject '{subject}'",
                lambda: self._client.lookup_schema(subject, self._to_client(schema), deleted=True),
            )
        except NotFoundError:
            return None
        return None if found.version is None else int(found.version)

    def referenced(self, schema: RegistrySchema) -> dict[str, RegistrySchema]:
        """Return every schema that one uses, directly or not, by the names they are imported by; those that others use come first.

        Raises:
            DataError: one is gone.
            RetriableError: the registry does not answer.
        """
        return {reference.name: used for reference, used in self._references(schema).items()}

    def _references(self, schema: RegistrySchema) -> dict[Reference, RegistrySchema]:
        found: dict[Reference, RegistrySchema] = {}
        self._collect(schema, found)
        return found

    def _collect(self, schema: RegistrySchema, found: dict[Reference, RegistrySchema]) -> None:
        for reference in schema.references:
            if reference in found:
                continue
            what = f"get version {reference.version} of subject '{reference.subject}'"
            held = self._ask(what, lambda r=reference: self._client.get_version(r.subject, r.version))  # type: ignore[misc]
            used = _from_client(held.schema)
            self._collect(used, found)
            found[reference] = used

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()
        if self._second is not None:
            self._second.close()

    def _to_client(self, schema: RegistrySchema) -> Any:
        references = [self._library.SchemaReference(r.name, r.subject, r.version) for r in schema.references]
        return self._library.Schema(schema.text, schema.kind, references)

    def _ask(self, what: str, request: Callable[[], T]) -> T:
        try:
            return request()
        except self._library.error.SchemaRegistryError as error:
            text = f"Could not {what} at {self._where}: {error.error_message} (HTTP {error.http_status_code}, code {error.error_code})"
            if error.http_status_code in _PASSING:
                raise RetriableError(text) from None
            if error.http_status_code == _NOT_FOUND:
                raise NotFoundError(text) from None
            raise DataError(text) from None
        except self._library.error.OAuthTokenError:
            raise RetriableError(f"Could not {what}: no token was given at bearer.auth.issuer.endpoint.url") from None
        except Exception as error:
            # The client's HTTP library is one of two; both have a TransportError above everything that is not an answer.
            if not isinstance(error, OSError) and not any(base.__name__ == "TransportError" for base in type(error).__mro__):
                raise
            raise RetriableError(f"Could not {what}: the schema registry at {self._where} does not answer ({error})") from None


def _library() -> Any:
    try:
        library = importlib.import_module("confluent_kafka.schema_registry")
        importlib.import_module("confluent_kafka.schema_registry.error")
    except ImportError as error:
        raise ConfigError(
            f"A converter with a schema registry needs the Python package '{error.name}'. Install it with: {install_command('registry')}"
        ) from None
    return library


class NotFoundError(DataError):
    """The registry has no such subject, version or schema."""


def _from_client(schema: Any) -> RegistrySchema:
    references = tuple(Reference(r.name, r.subject, r.version) for r in schema.references or ())
    return RegistrySchema(schema.schema_type or "AVRO", schema.schema_str or "", references)


def _without_user_info(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
