"""S3 (and CloudFront) APIs on loopback: moto, in memory.

Each line on standard input is a JSON object. `{"folder": F, "page": N}` forks a server, because
importing moto takes a second. The answer is a line with its port and process ID. S3 lists N keys in
a page. The file `requests` in the folder has a line for each request, in the order of arrival. If
the folder has a file `refusal`, the server rejects the requests that this file describes.
`{"stop": P}` ends a server. All servers end with standard input.
"""

import json
import os
import pathlib
import signal
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
    """Completes invalidations immediately. moto uses its own status, which no waiter knows."""
    begin = cloudfront.Invalidation.__init__

    def begin_and_end(self, *args):
        begin(self, *args)
        self.status = "Completed"

    cloudfront.Invalidation.__init__ = begin_and_end


class Quiet(WSGIRequestHandler):
    # Connections stay open, as with S3.
    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass


def fork(folder, page):
    """Forks a server. Returns its port and its process ID."""
    server = make_server(
        "127.0.0.1", 0, Watched(pathlib.Path(folder)), threaded=True, request_handler=Quiet
    )
    process = os.fork()
    if process == 0:
        log = open(pathlib.Path(folder) / "log", "w", encoding="utf-8")
        os.dup2(log.fileno(), sys.stderr.fileno())
        os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = str(page)
        server.serve_forever()
    server.server_close()
    return server.port, process


def main():
    in_cloudfronts_words()
    # Imports the modules of all servers.
    create_backend_app("s3")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    running = set()
    for line in sys.stdin:
        order = json.loads(line)
        if "stop" in order:
            os.kill(order["stop"], signal.SIGKILL)
            running.remove(order["stop"])
            continue
        port, process = fork(order["folder"], order["page"])
        running.add(process)
        print(port, process, flush=True)
    for process in running:
        os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
