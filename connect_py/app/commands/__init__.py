"""One module a command of `connect-py`. Only these import the sibling packages, and only when the command runs."""
