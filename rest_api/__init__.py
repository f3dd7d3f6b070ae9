"""Connect's REST API over the `Herder` protocol, and nothing of Connect's logic.

server.py                   sockets and uvicorn, in a thread of its own
  waiting.py `Gate`         requests that come while the worker starts
    middleware.py           request ids, the access log, answers to defects; foreign origins
      compat/headers.py     headers of the worker's owner, pages of other origins
        compat/jaxrs.py     what the reference's container decides before a resource is called: 404, 405, 406, 415, 401, HEAD, OPTIONS
          waiting.py `Deadline`
            app.py          FastAPI: routes/, one module a resource, with bodies.py in and models.py out
"""

from rest_api.app import create_admin_app, create_app, create_health_app
from rest_api.config import RestConfig
from rest_api.server import Server, serve

__all__ = ["RestConfig", "Server", "create_admin_app", "create_app", "create_health_app", "serve"]
