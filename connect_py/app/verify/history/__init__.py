"""Whether what was delivered is what the database has committed: a history of changes, tested against what a connector promises.

- `records`: the values that a history is made of, and `Finding`. Stable: tests and the simulation make them.
- `trail`: puts changes and events together, key by key.
- `checks`: one function for each invariant, and `check`, which runs all of them.
- `journal`, `database`, `topics`, `run`: the journal's tables and triggers, how they are read, the topics' records, and all of it together:
  the command ``connect-py verify --history``.

`records`, `trail` and `checks` do no I/O and import nothing outside the standard library.
"""
