"""How MySQL's types become fields: one module a family, each with a table from the type's name to the function that makes a plan."""
