"""What a PostgreSQL connector needs of its server, as pure functions from facts to findings: a start and the doctor use the same ones."""
