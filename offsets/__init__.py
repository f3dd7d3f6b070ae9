"""The worker's stores: configurations, statuses and source offsets on compacted topics, in memory and in a file.

Topic, key and value formats are Connect's, byte for byte, so that a cluster can be taken over in either direction.
"""
