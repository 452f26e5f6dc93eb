"""Manifests and pointers to and from canonical JSON (FORMAT.md, sections 3 to 5)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass

from publisher.errors import NewerFormatError, Reason, VersionError
from publisher.fields import Fields, canonical
from publisher.manifest import (
    FORMAT,
    Artefact,
    Asset,
    Base,
    Blob,
    Delta,
    Pin,
    Pointer,
    ServingVersion,
    StreamRange,
    Table,
)
from publisher.signing import Signature, Signer, Verifier

_POINTER_REMEDY = "headrace rollback MODEL_DIR SEQ writes it anew, and so does a publisher with its next version"
VERSION_REMEDY = "restore it, or serve another version: headrace rollback MODEL_DIR SEQ"
_PIN_REMEDY = "headrace rollback MODEL_DIR SEQ writes it anew, headrace publish CONFIG --resume removes it"


def encode_version(version: ServingVersion, signer: Signer | None) -> bytes:
    """Serialize a manifest, signed where there is a signer."""
    body = {field.name: _plain(getattr(version, field.name)) for field in fields(version)}
    return _signed({"format": FORMAT, **body}, signer)


def _plain(value: object) -> object:
    """As `asdict`, which copies every string too: a manifest holds hundreds of deltas."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def decode_version(payload: bytes, what: str, verifier: Verifier | None) -> ServingVersion:
    """Parse and verify a manifest; `what` names it in errors."""
    with _remedy(VERSION_REMEDY):
        fields = Fields.parse(payload, what)
        _check_format(fields, what)
    if verifier is not None:
        _verify(fields, fields.optional_nested("signature"), verifier, what)
    with _remedy(VERSION_REMEDY):
        version = _version(fields)
        _check_deltas(version, what)
    return version


def _signed(body: dict[str, object], signer: Signer | None) -> bytes:
    signature = signer.sign(canonical(body)) if signer else None
    return canonical({**body, "signature": asdict(signature) if signature else None})


def _verify(fields: Fields, found: Fields | None, verifier: Verifier, what: str) -> None:
    signature = Signature(key=found.text("key"), value=found.text("value")) if found else None
    verifier.verify(canonical(fields.without("signature")), signature, what)


def encode_pointer(pointer: Pointer, signer: Signer | None = None) -> bytes:
    """Serialize a pointer, signed where there is a signer."""
    return _signed({"format": FORMAT, **asdict(pointer)}, signer)


def decode_pointer(payload: bytes, what: str, verifier: Verifier | None = None) -> Pointer:
    """Parse a pointer, and verify it where there is a key."""
    with _remedy(_POINTER_REMEDY):
        fields = Fields.parse(payload, what)
        _check_format(fields, what)
        pointer = Pointer(
            version=fields.integer("version"),
            digest=fields.text("digest"),
            generation=fields.integer("generation"),
            swapped_ms=fields.integer("swapped_ms"),
        )
    if verifier is not None:
        _verify(fields, fields.added_nested("signature"), verifier, what)
    return pointer


def is_signed(payload: bytes, what: str) -> bool:
    """Whether a pointer carries a signature, of whatever key."""
    return Fields.parse(payload, what).added_nested("signature") is not None


def encode_pin(pin: Pin, signer: Signer | None = None) -> bytes:
    """Serialize a pin, signed where there is a signer; else it has no such field, as earlier ones."""
    body: dict[str, object] = {"format": FORMAT, **asdict(pin)}
    return _signed(body, signer) if signer else canonical(body)


def decode_pin(payload: bytes, what: str, verifier: Verifier | None = None) -> Pin:
    """Parse a pin, and verify it where there is a key."""
    with _remedy(_PIN_REMEDY):
        fields = Fields.parse(payload, what)
        _check_format(fields, what)
        pin = Pin(version=fields.integer("version"), pinned_ms=fields.integer("pinned_ms"))
        if verifier is not None:
            _verify(fields, fields.added_nested("signature"), verifier, what)
    return pin


@contextmanager
def _remedy(remedy: str) -> Iterator[None]:
    """Say beside what is wrong with a file what can be done about it."""
    try:
        yield
    except NewerFormatError:
        raise
    except VersionError as error:
        raise VersionError(error.reason, f"{error}; {remedy}") from None


def _check_format(fields: Fields, what: str) -> None:
    found = fields.integer("format")
    if found != FORMAT:
        raise NewerFormatError(what, found, FORMAT)


def _check_deltas(version: ServingVersion, what: str) -> None:
    """Refuse a list of deltas that has a hole, is out of order, or does not end at the version."""
    ends = [version.base.seq] if not version.deltas else [delta.seq for delta in version.deltas]
    joined = all(left.seq == right.after for left, right in zip(version.deltas, version.deltas[1:], strict=False))
    growing = all(delta.after < delta.seq for delta in version.deltas)
    starts = {version.base.seq} & ({version.version} | {delta.after for delta in version.deltas})
    if not (joined and growing and starts and ends[-1] == version.version):
        raise VersionError(Reason.BROKEN_CHAIN, f"{what}: its deltas do not lead from base {version.base.seq} to it")


def _version(fields: Fields) -> ServingVersion:
    return ServingVersion(
        version=fields.integer("version"),
        previous=fields.optional_integer("previous"),
        chain=fields.text("chain"),
        commit=fields.text("commit"),
        series=fields.text("series"),
        contract=fields.text("contract"),
        features=fields.text("features"),
        step=fields.integer("step"),
        event_time_ms=fields.integer("event_time_ms"),
        watermark_ms=fields.integer("watermark_ms"),
        broker_time_ms=fields.integer("broker_time_ms"),
        created_ms=fields.integer("created_ms"),
        encoding=fields.text("encoding"),
        tables=tuple(_table(table) for table in fields.objects("tables")),
        base=decode_base(fields.nested("base")),
        deltas=tuple(_delta(delta) for delta in fields.objects("deltas")),
        dense=_blob(fields.nested("dense")),
        artefacts=tuple(decode_artefact(artefact) for artefact in fields.objects("artefacts")),
        config=_blob(fields.nested("config")),
        layout=_blob(fields.nested("layout")),
        stream=tuple(_range(part) for part in fields.objects("stream")),
        metrics=fields.numbers("metrics"),
        assets=tuple(_asset(asset) for asset in fields.added_objects("assets")),
        described=_blob(described) if (described := fields.added_nested("described")) else None,
    )


def _blob(fields: Fields) -> Blob:
    return Blob(path=fields.text("path"), size=fields.integer("size"), digest=fields.text("digest"))


def _table(fields: Fields) -> Table:
    return Table(name=fields.text("name"), kind=fields.text("kind"), dim=fields.integer("dim"))


def _asset(fields: Fields) -> Asset:
    return Asset(name=fields.text("name"), blob=_blob(fields.nested("blob")))


def decode_base(fields: Fields) -> Base:
    """Read the listing of a base."""
    blobs = tuple(_blob(blob) for blob in fields.objects("blobs"))
    return Base(seq=fields.integer("seq"), rows=fields.integer("rows"), blobs=blobs)


def _delta(fields: Fields) -> Delta:
    return Delta(
        after=fields.integer("after"),
        seq=fields.integer("seq"),
        rows=fields.integer("rows"),
        resets=fields.texts("resets"),
        blobs=tuple(_blob(blob) for blob in fields.objects("blobs")),
    )


def decode_artefact(fields: Fields) -> Artefact:
    """Read the description of a compiled artefact."""
    return Artefact(
        runtime=fields.text("runtime"),
        blob=_blob(fields.nested("blob")),
        torch=fields.text("torch"),
        machine=fields.text("machine"),
        isa=fields.text("isa"),
    )


def _range(fields: Fields) -> StreamRange:
    return StreamRange(
        topic=fields.text("topic"),
        topic_id=fields.text("topic_id"),
        partition=fields.integer("partition"),
        start_offset=fields.integer("start_offset"),
        start_row=fields.integer("start_row"),
        end_offset=fields.integer("end_offset"),
        end_row=fields.integer("end_row"),
    )
