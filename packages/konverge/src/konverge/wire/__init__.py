"""HOW it is spoken, without I/O: requests, responses, frames, and what the server's answers mean."""

from konverge.wire.answers import error_of, error_of_frame
from konverge.wire.frames import Bookmark, Frame, FrameReader
from konverge.wire.headers import retry_after, warning_texts
from konverge.wire.messages import BufferedResponse, Request, Response, Transport
from konverge.wire.options import DeleteOptions, ListOptions, Query, WatchOptions, WriteOptions
from konverge.wire.paths import collection_path, group_path, object_path, target

__all__ = [
    "Bookmark",
    "BufferedResponse",
    "DeleteOptions",
    "Frame",
    "FrameReader",
    "ListOptions",
    "Query",
    "Request",
    "Response",
    "Transport",
    "WatchOptions",
    "WriteOptions",
    "collection_path",
    "error_of",
    "error_of_frame",
    "group_path",
    "object_path",
    "retry_after",
    "target",
    "warning_texts",
]
