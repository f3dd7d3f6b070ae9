"""How PostgreSQL's types become fields: one module a family, each with a table from `pg_type.typname` to the function that makes a plan."""
