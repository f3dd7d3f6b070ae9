"""Fixtures for all tests: the servers, started once a session. See `fix_*.py`; no import of the project happens here."""

from collections.abc import Iterator

import pytest

pytest_plugins = [
    "tests.fix_browser",
    "tests.fix_catalogs",
    "tests.fix_kafka",
    "tests.fix_lanes",
    "tests.fix_long",
    "tests.fix_mariadb",
    "tests.fix_mongo",
    "tests.fix_mysql",
    "tests.fix_postgres",
    "tests.fix_registry",
    "tests.fix_spark",
    "tests.fix_worker",
    "tests.fix_cluster",
]


@pytest.fixture(autouse=True)
def _file_connectors_may_use_any_path() -> Iterator[None]:
    """As the workers of tests have it, for connectors that a test runs in its own process."""
    from connect_py.api.permissions import FILE_PATHS, permit

    permit({FILE_PATHS: "/"})
    yield
    permit({})
