"""The serving replica: loads what the pointer names, flips between requests, speaks the Open Inference Protocol."""

from checkpointer.open_store import StoreOptions, open_store
from publisher.replica.errors import RequestError, StartError
from publisher.replica.options import Notifications, ServeOptions
from publisher.replica.process import serve_store

__all__ = ["Notifications", "RequestError", "ServeOptions", "StartError", "serve", "serve_store"]


def serve(model_dir: str, options: ServeOptions, store: StoreOptions | None = None) -> int:
    """Serve a model directory until SIGTERM or SIGINT; return the exit status."""
    return serve_store(open_store(model_dir, store or StoreOptions()), options)
