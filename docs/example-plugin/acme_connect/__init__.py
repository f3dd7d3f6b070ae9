"""Plugins of a company called Acme: a source, a sink, a converter, a transform, a predicate and a config provider."""
