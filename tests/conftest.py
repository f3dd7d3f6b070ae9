"""Fixtures for all tests: the servers, started once a session. See `fix_*.py`; no import of the project happens here."""

pytest_plugins = [
    "tests.fix_catalogs",
    "tests.fix_kafka",
    "tests.fix_long",
    "tests.fix_mariadb",
    "tests.fix_mongo",
    "tests.fix_mysql",
    "tests.fix_postgres",
    "tests.fix_registry",
    "tests.fix_spark",
    "tests.fix_worker",
]
