"""DDL statements to changes of the tables' models. Pure.

sqlglot was tried first: it refused two of fifteen everyday statements (`ADD (…, …)`, a column with `SRID`) and returned four as text
(partitions, RENAME TABLE, CONVERT TO, ALTER DATABASE). Little of a statement is needed: its columns and keys.
"""
