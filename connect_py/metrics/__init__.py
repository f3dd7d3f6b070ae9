"""Count what the worker and its tasks do, and show it.

    task process    stats.py (windows) · task.py (counts of one task) ─ every 2 s, one message ─▶ worker
    worker process  worker.py (the worker's own counts, and the last message of each task) ─▶ exposition.py (Prometheus' text)

Names and meanings are those of `runtime/ConnectMetricsRegistry.java`. Nothing is counted for each row: a batch is counted once.
"""
