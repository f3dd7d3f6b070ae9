"""From DDL statements to changes of the tables' models (mysql.md §12). Pure.

sqlglot was tried first: of fifteen statements of an everyday life of a table it refused two (`ADD (…, …)`, a column with `SRID`) and gave
four back as text (partitions, RENAME TABLE, CONVERT TO, ALTER DATABASE). What is needed of a statement is little: its columns and keys.
"""
