# SPDX-License-Identifier: Apache-2.0
"""moto with a bucket: serve_moto.py HOST PORT BUCKET. It logs each request, and keeps connections.

One request at a time reaches moto, which looks at a condition first and writes then, with no lock between. What a
request sends is read before, so that one that is never finished keeps nobody waiting.
"""
import io
import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, run_simple
from werkzeug.test import Client

host, port, bucket = sys.argv[1], int(sys.argv[2]), sys.argv[3]
moto = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def serve(environ, start_response):
    sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(sent)
    with turn:
        return list(moto(environ, start_response))


Client(serve).put("/" + bucket, base_url=f"http://{host}:{port}")
WSGIRequestHandler.protocol_version = "HTTP/1.1"
run_simple(host, port, serve, threaded=True)
