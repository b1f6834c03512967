"""The lexer: from text to tokens, with the server's messages for unrecognized characters."""

from __future__ import annotations

import math
import re
from typing import Any, Final, NamedTuple

from konverge_cluster.cel.syntax import Message
from konverge_cluster.cel.values import UInt

__all__ = ["EOF", "LiteralError", "Token", "integer_value", "literal_value", "tokenize"]

EOF: Final = "<EOF>"

_MAX_DIGITS: Final = 20

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = (
    rf'"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\''
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"|\'(?:{_ESCAPE}|[^\\\'\n\r])*\''
)
_RAW: Final = (
    r'[rR]"""(?:.|\n)*?"""|[rR]\'\'\'(?:.|\n)*?\'\'\''
    r'|[rR]"[^"\n\r]*"|[rR]\'[^\'\n\r]*\''
)
_TOKEN: Final = re.compile(
    rf"""
    (?P<space>[\t\ \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_RAW}|{_STRING}))
    |(?P<string>{_RAW}|{_STRING})
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_ESCAPES: Final = re.compile(_ESCAPE)


class Token(NamedTuple):
    """A token: its kind, its text and its position."""

    kind: str
    text: str
    at: int


class LiteralError(ValueError):
    """A literal without a valid value; the message is the server's."""


def tokenize(text: str) -> tuple[list[Token], list[Message]]:
    """Return all tokens of a text, with `EOF` at the end, and messages about unrecognized characters."""
    tokens: list[Token] = []
    messages: list[Message] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            bad = _unrecognized(text, at)
            messages.append(Message(at, f"Syntax error: token recognition error at: '{_escape(bad)}'"))
            at += len(bad)
            continue
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match[0], at))
        at = match.end()
    tokens.append(Token("eof", EOF, len(text)))
    return tokens, messages


def _unrecognized(text: str, at: int) -> str:
    """Return the characters that the server's lexer skips before it continues."""
    letter = text[at]
    if letter in "\"'":
        # An unterminated string, or one with an invalid escape.
        end = at + 1
        while end < len(text) and text[end] not in "\r\n":
            if text[end] == "\\":
                match = _ESCAPES.match(text, end)
                if match is None:
                    return text[at : end + 2]
                end = match.end()
                continue
            if text[end] == letter:
                break
            end += 1
        return text[at:end]
    # A single "=" is reported together with the next character.
    return text[at : at + 2] if letter in "=&|" else letter


def _escape(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def literal_value(token: Token) -> Any:
    """Return the value of a literal.

    Raises: LiteralError.
    """
    if token.kind == "int":
        return integer_value(token.text, "int", 2**63)
    if token.kind == "uint":
        return UInt(integer_value(token.text[:-1], "uint", 2**64))
    if token.kind == "float":
        value = float(token.text)
        if math.isinf(value):
            raise LiteralError("invalid double literal")
        return value
    if token.kind == "bytes":
        return _parse_bytes(token.text[1:])
    return _parse_string(token.text)


def integer_value(text: str, name: str, end: int) -> int:
    """Return the value of an unsigned literal, which must be below `end`.

    Raises: LiteralError.
    """
    digits = text.removeprefix("0x").lstrip("0") or "0"
    # The conversion of thousands of digits is slow, and Python refuses it.
    value = int(digits, 16 if text.startswith("0x") else 10) if len(digits) <= _MAX_DIGITS else end
    if value >= end:
        raise LiteralError(f"invalid {name} literal")
    return value


def _content(text: str) -> tuple[str, bool]:
    """Return the text between the quotes, and whether it has escapes."""
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width], raw


def _parse_string(text: str) -> str:
    content, raw = _content(text)
    return content if raw else _ESCAPES.sub(lambda match: chr(_code(match[0])), content)


def _parse_bytes(text: str) -> bytes:
    content, raw = _content(text)
    if raw:
        return content.encode()
    out = bytearray()
    at = 0
    for match in _ESCAPES.finditer(content):
        out += content[at : match.start()].encode()
        code, kind = _code(match[0]), match[0][1]
        # Octal and hexadecimal escapes are bytes; the others are characters.
        out += bytes([code]) if kind in "0123xX" else chr(code).encode()
        at = match.end()
    return bytes(out + content[at:].encode())


def _code(escape: str) -> int:
    kind = escape[1]
    if kind in "xXuU":
        return int(f"0x{escape[2:]}", 0)
    if kind in "0123":
        return int(escape[1:], 8)
    return ord(_SIMPLE.get(kind, kind))
