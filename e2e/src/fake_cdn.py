"""AWS as a pipeline sees it, on loopback: the APIs of S3 and CloudFront, and an edge that serves the site over TLS.

The fake providers create no resources here, so the first request for a bucket or a distribution creates it.
Arguments: a folder, a certificate and its key. Prints the port of the APIs, then the port of the edge.
"""

import pathlib
import ssl
import sys
import threading
from types import SimpleNamespace

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "paved/tests/support"))

import s3
from moto.cloudfront.models import cloudfront_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from werkzeug.serving import make_server
from werkzeug.wrappers import Request, Response

BUCKETS = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
DISTRIBUTIONS = cloudfront_backends[DEFAULT_ACCOUNT_ID]["aws"].distributions


class MadeOnDemand:
    def __init__(self, folder):
        self.apis = s3.Watched(folder)
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        match environ["PATH_INFO"].split("/")[1:]:
            case ["2020-05-31", "distribution", name, *_]:
                location = f"https://cloudfront.amazonaws.com/2020-05-31/distribution/{name}"
                DISTRIBUTIONS.setdefault(name, SimpleNamespace(advance=lambda: None, etag="E", location=location))
            case [bucket, *_] if bucket:
                with self.lock:
                    if bucket not in BUCKETS.buckets:
                        BUCKETS.create_bucket(bucket, "us-east-1")
        return self.apis(environ, start_response)


def edge(environ, start_response):
    """The only bucket's files, as CloudFront serves them: its root is `index.html`."""
    (bucket,) = BUCKETS.buckets
    key = BUCKETS.get_object(bucket, Request(environ).path.lstrip("/") or "index.html")
    answer = Response(key.value, content_type=key.metadata.get("content-type")) if key else Response(status=403)
    return answer(environ, start_response)


def main():
    folder, certificate, key = sys.argv[1:]
    s3.in_cloudfronts_words()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    apps = [(MadeOnDemand(pathlib.Path(folder)), None), (edge, tls)]
    servers = [
        make_server("127.0.0.1", 0, app, threaded=True, request_handler=s3.Quiet, ssl_context=context)
        for app, context in apps
    ]
    print(*[server.port for server in servers], flush=True)
    threading.Thread(target=servers[1].serve_forever, daemon=True).start()
    servers[0].serve_forever()


if __name__ == "__main__":
    main()
