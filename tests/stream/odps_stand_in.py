"""A stand-in for MaxCompute: the HTTP calls of pyodps for tables (data_and_samplers.md sections 3.3 and 3.5)."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

CHUNK = 65_536
ROWS_PER_BATCH = 4

_ARROW = {"bigint": pa.int64(), "string": pa.string(), "double": pa.float64(), "float": pa.float32(), "int": pa.int32()}


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        table.append(byte)
    return table


_TABLE = _crc_table()


def crc32c(data: bytes, before: int = 0) -> int:
    """Castagnoli's; `before` is that of what precedes the data."""
    value = before ^ 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """Chunks with their checksums; the last, shorter one with that of everything."""
    parts, total = [CHUNK.to_bytes(4, "big")], 0
    for at in range(0, len(data) + 1, CHUNK):
        chunk = data[at : at + CHUNK]
        total = crc32c(chunk, total)
        last = len(chunk) < CHUNK
        parts += [chunk, (total if last else crc32c(chunk)).to_bytes(4, "big")]
    return b"".join(parts)


def unframed(body: bytes) -> bytes:
    """The data of a framed body; raise ValueError where a checksum is wrong."""
    size, body = int.from_bytes(body[:4], "big"), body[4:]
    data = b""
    while len(body) >= size + 4:
        chunk, check, body = body[:size], body[size : size + 4], body[size + 4 :]
        if crc32c(chunk) != int.from_bytes(check, "big"):
            raise ValueError("checksum of a chunk")
        data += chunk
    data += body[:-4]
    if crc32c(data) != int.from_bytes(body[-4:], "big"):
        raise ValueError("checksum of everything")
    return data


@dataclass
class Table:
    """Rows by partition ("" where there are none); `modified` is in seconds."""

    columns: dict[str, str]
    keys: list[str] = field(default_factory=list)
    rows: dict[str, pa.Table] = field(default_factory=dict)
    modified: int = 1_700_000_000

    @property
    def described(self) -> dict[str, object]:
        return {
            "columns": [{"name": name, "type": kind} for name, kind in self.columns.items()],
            "partitionKeys": [{"name": name, "type": "string"} for name in self.keys],
        }

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, _ARROW[kind]) for name, kind in self.columns.items()])


class StandIn:
    """Tables by name, sessions by id; `fail` makes the next calls fail, `requests` are those that came."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.downloads: dict[str, tuple[pa.Table, Table]] = {}
        self.uploads: dict[str, tuple[str, str, bool]] = {}
        self.blocks: dict[str, dict[int, pa.Table]] = {}
        self.requests: list[str] = []
        self.fail: list[str] = []
        self.sql: list[str] = []
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    def account_file(self, folder: Path) -> str:
        path = folder / "odps.ini"
        path.write_text(f"access_id = me\naccess_key = secret\nend_point = {self.endpoint}\nproject_name = p\n")
        return str(path)

    def call(self, method: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        """Answer one request."""
        parts = path.removeprefix("/api").strip("/").split("/")
        if parts[-1] == "tunnel":
            return 200, f"127.0.0.1:{self.port}".encode(), {}
        if "instances" in parts:
            return self._instance(method, query, body)
        if "tables" not in parts:
            return 404, b"", {}
        name = parts[parts.index("tables") + 1]
        if self.fail and ({"downloads", "downloadid", "uploads", "uploadid"} & set(query)):
            code = self.fail.pop(0)
            return 500, json.dumps({"Code": code, "Message": "told to fail", "RequestId": "r"}).encode(), {}
        table = self.tables.get(name)
        if table is None:
            return (
                404,
                b"<Error><Code>NoSuchTable</Code><Message>no such table</Message><RequestId>r</RequestId>"
                b"<HostId>h</HostId></Error>",
                {},
            )
        if path.startswith("/api"):
            return self._describe(name, table, query)
        return self._tunnel(method, name, table, query, body)

    def _describe(self, name: str, table: Table, query: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if "partitions" in query:
            items = "".join(
                "<Partition>"
                + "".join(
                    f'<Column Name="{pair.partition("=")[0]}" Value="{pair.partition("=")[2]}"/>'
                    for pair in partition.split(",")
                )
                + "</Partition>"
                for partition in table.rows
            )
            return 200, f"<Partitions><Marker/><MaxItems>1000</MaxItems>{items}</Partitions>".encode(), {}
        times = {"lastModifiedTime": table.modified}
        if "partition" in query:
            return 200, f"<Partition><Schema><![CDATA[{json.dumps(times)}]]></Schema></Partition>".encode(), {}
        schema = json.dumps(table.described | times)
        text = f'<Table format="Json"><Name>{name}</Name><Schema format="Json"><![CDATA[{schema}]]></Schema></Table>'
        return 200, text.encode(), {}

    def _instance(self, method: str, query: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if method == "POST":
            text = body.decode()
            sql = text[text.index("<![CDATA[", text.index("<Query>")) + 9 : text.index("]]></Query>")]
            self.sql.append(sql)
            self._create(sql)
            return 201, b"", {"Location": f"{self.endpoint}/projects/p/instances/i1"}
        if "taskstatus" in query:
            return (
                200,
                (
                    b'<Instance><Status>Terminated</Status><Tasks><Task Type="SQL"><Name>AnonymousSQLTask</Name>'
                    b"<Status>Success</Status></Task></Tasks></Instance>"
                ),
                {},
            )
        return 200, b"<Instance><Status>Terminated</Status></Instance>", {}

    def _create(self, sql: str) -> None:
        head, _, rest = sql.partition("(")
        columns, _, after = rest.partition(")")
        name = head.split()[-1].strip("`").rsplit(".", 1)[-1].strip("`")
        fields = dict(part.strip().replace("`", "").lower().split()[:2] for part in columns.split(","))
        keys = []
        if "PARTITIONED BY" in after.upper():
            inner = after[after.index("(") + 1 : after.rindex(")")]
            keys = [part.strip().strip("`").split("`")[0].split()[0] for part in inner.split(",")]
        self.tables[name] = Table(fields, keys)

    def _tunnel(
        self, method: str, name: str, table: Table, query: dict[str, str], body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        partition = query.get("partition", "")
        if "downloads" in query:
            if partition not in table.rows:
                return 404, json.dumps({"Code": "NoSuchPartition", "Message": "no such partition"}).encode(), {}
            number = uuid.uuid4().hex
            self.downloads[number] = table.rows[partition], table
            return 200, self._session(number), {}
        if "downloadid" in query and "data" not in query:
            if query["downloadid"] not in self.downloads:
                return 404, json.dumps({"Code": "NoSuchDownload", "Message": "session expired"}).encode(), {}
            return 200, self._session(query["downloadid"]), {}
        if "downloadid" in query:
            return 200, self._data(query), {}
        return self._upload(method, name, table, query, body)

    def _session(self, number: str) -> bytes:
        rows, table = self.downloads[number]
        return json.dumps(
            {"DownloadID": number, "Status": "NORMAL", "RecordCount": rows.num_rows, "Schema": table.described}
        ).encode()

    def _data(self, query: dict[str, str]) -> bytes:
        rows, _ = self.downloads[query["downloadid"]]
        start, count = (int(part) for part in query["rowrange"].strip("()").split(","))
        chosen = rows.slice(start, count)
        if "columns" in query:
            names = query["columns"].split(",")
            chosen = chosen.select([name for name in rows.column_names if name in names])
        batches = chosen.combine_chunks().to_batches(max_chunksize=ROWS_PER_BATCH)
        return framed(b"".join(bytes(batch.serialize()) for batch in batches))

    def _upload(
        self, method: str, name: str, table: Table, query: dict[str, str], body: bytes
    ) -> tuple[int, bytes, dict[str, str]]:
        if "uploads" in query:
            number = uuid.uuid4().hex
            self.uploads[number] = name, query.get("partition", ""), query.get("overwrite") == "true"
            self.blocks[number] = {}
            return 200, self._upload_session(number, table), {}
        number = query["uploadid"]
        if method == "PUT":
            stream = pa.BufferReader(table.schema.serialize().to_pybytes() + unframed(body))
            self.blocks[number][int(query["blockid"])] = pa.ipc.open_stream(stream).read_all()
            return 200, b"", {}
        if method == "POST":
            _, partition, overwrite = self.uploads[number]
            made = [self.blocks[number][block] for block in sorted(self.blocks[number])]
            before = [] if overwrite or partition not in table.rows else [table.rows[partition]]
            table.rows[partition] = pa.concat_tables([*before, *made]) if before or made else table.schema.empty_table()
            return 200, json.dumps({"UploadID": number, "Status": "CLOSED", "UploadedBlockList": []}).encode(), {}
        return 200, self._upload_session(number, table), {}

    def _upload_session(self, number: str, table: Table) -> bytes:
        blocks = [{"BlockID": block} for block in sorted(self.blocks[number])]
        return json.dumps(
            {"UploadID": number, "Status": "NORMAL", "UploadedBlockList": blocks, "Schema": table.described}
        ).encode()


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
            stand_in.requests.append(f"{self.command} {self.path}")
            status, body, headers = stand_in.call(self.command, unquote(parts.path), query, self._body())
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = _answer

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def running() -> Iterator[StandIn]:
    """A stand-in that listens on the loopback interface."""
    stand_in = StandIn()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(stand_in))
    stand_in.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
