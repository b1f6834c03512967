"""From text to tokens, with what the server's lexer says about letters that belong to none."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from konverge_cluster.cel.syntax import Message
from konverge_cluster.cel.values import UInt

__all__ = ["EOF", "BadLiteral", "Token", "literal_value", "tokens_of"]

EOF: Final = "<EOF>"

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
    """A piece of the text: what kind of piece, how it is written, where it starts."""

    kind: str
    text: str
    at: int


class BadLiteral(ValueError):
    """A constant that has no value; the message is the server's."""


def tokens_of(text: str) -> tuple[list[Token], list[Message]]:
    """All tokens of a text, an `EOF` at the end, and what is wrong with the letters between them."""
    tokens: list[Token] = []
    messages: list[Message] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            bad = _unreadable(text, at)
            messages.append(Message(at, f"Syntax error: token recognition error at: '{_shown(bad)}'"))
            at += len(bad)
            continue
        if match.lastgroup != "space":
            tokens.append(Token(str(match.lastgroup), match[0], at))
        at = match.end()
    tokens.append(Token("eof", EOF, len(text)))
    return tokens, messages


def _unreadable(text: str, at: int) -> str:
    """The letters that the server's lexer skips before it tries again."""
    letter = text[at]
    if letter in "\"'":
        # A text that has no end, or holds an escape that is none.
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
    # A lone "=" is tried together with what follows it.
    return text[at : at + 2] if letter in "=&|" else letter


def _shown(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def literal_value(token: Token) -> Any:
    """The value of a constant.

    Raises: BadLiteral.
    """
    if token.kind == "int":
        return _bounded(int(token.text, 0 if token.text.startswith("0x") else 10), -(2**63), 2**63, "int")
    if token.kind == "uint":
        digits = token.text[:-1]
        return UInt(_bounded(int(digits, 0 if digits.startswith("0x") else 10), 0, 2**64, "uint"))
    if token.kind == "float":
        return float(token.text)
    if token.kind == "bytes":
        return _read_bytes(token.text[1:])
    return _read_text(token.text)


def _bounded(value: int, least: int, end: int, name: str) -> int:
    if not least <= value < end:
        raise BadLiteral(f"invalid {name} literal")
    return value


def _content(text: str) -> tuple[str, bool]:
    """What stands between the quotes, and whether escapes count."""
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width], raw


def _read_text(text: str) -> str:
    content, raw = _content(text)
    return content if raw else _ESCAPES.sub(lambda match: chr(_code(match[0])), content)


def _read_bytes(text: str) -> bytes:
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
