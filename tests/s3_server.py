"""A real server that speaks S3, in this process."""

import logging
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def s3_server(bucket: str) -> Iterator[str]:
    """Its endpoint, with one bucket."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from moto.server import ThreadedMotoServer
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{bucket}", method="PUT"), timeout=30).close()
        yield endpoint
    finally:
        server.stop()
