"""The protocol of the API without I/O: requests, responses, watch frames, errors."""

from konverge.wire.channels import V4_CHANNELS, V5_CHANNELS, Channel, exit_code, pack_message, unpack_message
from konverge.wire.error_responses import error_from_frame, error_from_response
from konverge.wire.frames import Bookmark, Frame, FrameReader
from konverge.wire.headers import retry_after, warning_texts
from konverge.wire.messages import (
    BufferedResponse,
    Request,
    Response,
    SocketTransport,
    Transport,
    WebSocket,
    WebSocketTransport,
)
from konverge.wire.options import DeleteOptions, ListOptions, Query, WatchOptions, WriteOptions
from konverge.wire.paths import collection_path, group_path, object_path, request_target

__all__ = [
    "V4_CHANNELS",
    "V5_CHANNELS",
    "Bookmark",
    "BufferedResponse",
    "Channel",
    "DeleteOptions",
    "Frame",
    "FrameReader",
    "ListOptions",
    "Query",
    "Request",
    "Response",
    "SocketTransport",
    "Transport",
    "WatchOptions",
    "WebSocket",
    "WebSocketTransport",
    "WriteOptions",
    "collection_path",
    "error_from_frame",
    "error_from_response",
    "exit_code",
    "group_path",
    "object_path",
    "pack_message",
    "request_target",
    "retry_after",
    "unpack_message",
    "warning_texts",
]
