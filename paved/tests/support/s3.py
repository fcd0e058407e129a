"""An S3 (and CloudFront) API on loopback: moto, in memory.

Started with a folder. Prints its port. Every request is a line of `requests` there, in the order of arrival; where the folder
has a file `refusal`, requests that it names are refused.
"""

import json
import pathlib
import sys
import threading

from moto.cloudfront import models as cloudfront
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response


class Watched:
    def __init__(self, folder):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.refusal = folder / "refusal"
        self.requests = open(folder / "requests", "a", encoding="utf-8")
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        request = Request(environ)
        target = request.full_path.rstrip("?")
        refused = self.is_refused(request.method, target)
        with self.lock:
            self.requests.write(f"{request.method} {target}{' refused' if refused else ''}\n")
            self.requests.flush()
        if refused:
            request.get_data()
            status, code = refused
            body = f"<Error><Code>{code}</Code><Message>told so by the test</Message></Error>"
            return Response(body, status, mimetype="application/xml")(environ, start_response)
        return self.moto(environ, start_response)

    def is_refused(self, method, target):
        if not self.refusal.exists():
            return None
        rule = json.loads(self.refusal.read_text())
        if method == rule["method"] and rule["path"] in target:
            return rule["status"], rule["code"]
        return None


def in_cloudfronts_words():
    """An invalidation is done at once; moto has a word of its own for that, which no waiter knows."""
    begin = cloudfront.Invalidation.__init__

    def begin_and_end(self, *args):
        begin(self, *args)
        self.status = "Completed"

    cloudfront.Invalidation.__init__ = begin_and_end


class Quiet(WSGIRequestHandler):
    # Connections stay open, as they do with S3.
    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass


def main():
    in_cloudfronts_words()
    server = make_server(
        "127.0.0.1", 0, Watched(pathlib.Path(sys.argv[1])), threaded=True, request_handler=Quiet
    )
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
