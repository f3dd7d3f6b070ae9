"""What is there for parity with a Java worker alone: Jetty's and JAX-RS's answers before a resource is called and their reading of
parameters (`jaxrs.py`), headers (`headers.py`). No route needs any of it.
"""
