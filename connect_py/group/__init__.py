"""The group of workers: what its members say to each other, and how its leader shares the work out (KIP-415).

Pure: no sockets, threads or clocks. Times are arguments, in milliseconds.
"""
