"""Work with a Connect worker from outside, by its REST API alone: this project's worker or Kafka Connect's in Java.

`rest` sends requests, `contexts` knows where to, `files` reads what a user wants, `diff` compares it with what is there, `events` writes
records as lines. Nothing here prints; `connect_py.app.commands` does.
"""
