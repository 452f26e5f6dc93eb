"""Secrets stay out of configurations: a URI that carries one is refused, with the remedy and without the secret."""

import re
from urllib.parse import parse_qsl, urlsplit

from google.protobuf.message import Message

from protos.errors import ConfigError, Reason
from protos.walk import strings

_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://")
_SECRET_KEY = re.compile(
    r"(password|passwd|secret|token|access[._-]?key|api[._-]?key|signature|credential|username)", re.I
)

# What replaces each key of a kafka:// URI, and of others where the name fits.
_REMEDIES = {
    "sasl.username": "put it into a file and name that in stream_config.security.username_file",
    "sasl.password": "put it into a file and name that in stream_config.security.password_file",
    "ssl.key.password": "put it into a file and name that in stream_config.security.key_password_file",
    "ssl.keystore.password": "use stream_config.security.key_file and key_password_file",
    "ssl.key.pem": "put it into a file and name that in stream_config.security.key_file",
}
_DEFAULT_REMEDY = (
    "put it into a file and name the file (stream_config.security, "
    "data_config.s3.credentials_file or checkpoint_config.s3.credentials_file)"
)


def refuse_secrets(message: Message, source: str = "") -> None:
    """Raise ConfigError when a string of `message` is a URI with a user, a password or a secret parameter."""
    for path, text in strings(message):
        for uri in re.split(r",(?=[A-Za-z][A-Za-z0-9+.-]*://)", text):
            _refuse_in_uri(path, uri.strip(), source)
        if path == "stream_config.brokers":
            # Addresses without a scheme, which someone may write like a URI all the same.
            _refuse_in_uri(path, f"kafka://{text}", source)


def _refuse_in_uri(path: str, uri: str, source: str) -> None:
    if not _URI.match(uri):
        return
    found = secret_part(uri)
    if found is not None:
        remedy = _REMEDIES.get(found, _DEFAULT_REMEDY)
        raise ConfigError(f"{path} carries {found} in its URI; {remedy}", reason=Reason.SECRET, source=source)


def secret_part(uri: str) -> str | None:
    """What in `uri` is a secret, named; None where nothing is.

    >>> secret_part("s3://id:key@bucket/model"), secret_part("kafka://b:9092/t?sasl.password=x"), secret_part("s3://b/m")
    ('a user and password', 'sasl.password', None)
    """
    # An authority of several brokers is no host to urlsplit, yet its text is what is asked here.
    parts = urlsplit(uri.replace("{", "").replace("}", ""))
    if "@" in parts.netloc:
        return "a user and password" if ":" in parts.netloc.split("@")[0] else "a user name"
    keys = [key for key, _ in parse_qsl(parts.query, keep_blank_values=True)]
    return next((key for key in keys if key == "ssl.key.pem" or _SECRET_KEY.search(key)), None)
