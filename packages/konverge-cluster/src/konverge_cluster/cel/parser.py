"""The parser: from tokens to a tree, by recursive descent.

Messages are those of the server's parser for common mistakes: a missing token, an extraneous token, an
unclosed bracket. Parsing stops at the first syntax error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from konverge_cluster.cel.lexer import EOF, LiteralError, Token, integer_value, literal_value, tokenize
from konverge_cluster.cel.macros import MacroError, expand_global, expand_member
from konverge_cluster.cel.recursion import deep_recursion
from konverge_cluster.cel.syntax import (
    NOWHERE,
    Call,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Message,
    Node,
    Select,
    Struct,
    depth_of,
    qualified_name,
)

__all__ = ["RESERVED", "ParseError", "parse"]

_EXPECTED: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_LITERALS: Final = {"true": True, "false": False, "null": None}
RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"}
    | {"namespace", "null", "package", "return", "true", "var", "void", "while"}
)
_RELATIONS: Final = ("<", "<=", ">=", ">", "==", "!=", "in")
_MAX_DEPTH: Final = 250
_MAX_LENGTH: Final = 100_000


class ParseError(ValueError):
    """A text is not an expression."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(messages[0].text)
        self.messages = messages


def parse(text: str) -> Node:
    """Parse an expression.

    Raises: ParseError.
    """
    if len(text) > _MAX_LENGTH:
        raise _too_large(f"expression code point size exceeds limit: size: {len(text)}, limit {_MAX_LENGTH}")
    tokens, messages = tokenize(text)
    parser = _Parser(tokens, messages)
    try:
        with deep_recursion():
            node = parser.whole()
    except _ParserAbort:
        node = None
    if parser.messages or node is None:
        raise ParseError(parser.messages)
    if depth_of(node) > _MAX_DEPTH:
        raise _too_large("max recursion depth exceeded")
    return node


def _too_large(text: str) -> ParseError:
    return ParseError([Message(NOWHERE, text)])


class _ParserAbort(Exception):
    """Parsing cannot continue."""


class _Parser:
    def __init__(self, tokens: list[Token], messages: list[Message]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0
        self.messages = messages

    def whole(self) -> Node:
        node = self._expression()
        token = self._token
        if token.kind != "eof":
            is_last = self._tokens[self._place + 1].kind == "eof"
            what = "extraneous" if is_last else "mismatched"
            self._report(token.at, f"Syntax error: {what} input '{token.text}' expecting {EOF}")
        return node

    # Tokens.

    @property
    def _token(self) -> Token:
        return self._tokens[self._place]

    def _is(self, *texts: str) -> bool:
        token = self._token
        return token.kind in ("sign", "name") and token.text in texts

    def _next_token(self) -> Token:
        token = self._token
        self._place += 1
        return token

    def _accept(self, text: str) -> Token | None:
        return self._next_token() if self._token.kind == "sign" and self._token.text == text else None

    def _close(self, text: str) -> None:
        token = self._token
        if self._accept(text) is None:
            self._fail(token, f"missing '{text}' at '{token.text}'")

    def _report(self, at: int, text: str) -> None:
        self.messages.append(Message(at, text))

    def _fail(self, token: Token, text: str) -> NoReturn:
        self._report(token.at, f"Syntax error: {text}")
        raise _ParserAbort

    # Grammar, from the lowest to the highest precedence.

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _too_large(f"expression recursion limit exceeded: {_MAX_DEPTH}")
        node = self._or()
        mark = self._accept("?")
        if mark is not None:
            yes = self._or()
            self._close(":")
            node = Call(mark.at, "_?_:_", [node, yes, self._expression()])
        self._depth -= 1
        return node

    def _or(self) -> Node:
        return self._chain("||", self._and)

    def _and(self) -> Node:
        return self._chain("&&", self._relation)

    def _chain(self, sign: str, term: Callable[[], Node]) -> Node:
        """Parse terms with a logical operator between them into a balanced tree, so that a long chain is not deep."""
        terms, marks = [term()], []
        while mark := self._accept(sign):
            marks.append(mark.at)
            terms.append(term())
        return _balance(f"_{sign}_", terms, marks)

    def _relation(self) -> Node:
        node = self._sum()
        while self._is(*_RELATIONS):
            mark = self._next_token()
            function = "@in" if mark.text == "in" else f"_{mark.text}_"
            node = Call(mark.at, function, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node = self._product()
        while self._is("+", "-"):
            mark = self._next_token()
            node = Call(mark.at, f"_{mark.text}_", [node, self._product()])
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self._is("*", "/", "%"):
            mark = self._next_token()
            node = Call(mark.at, f"_{mark.text}_", [node, self._unary()])
        return node

    def _unary(self) -> Node:
        if not self._is("!", "-"):
            return self._member(self._primary())
        mark = self._next_token()
        number = self._token
        if mark.text == "-" and number.kind in ("int", "float"):
            self._next_token()
            signed = Token(number.kind, number.text, mark.at)
            return self._member(self._literal(signed, negative=True))
        count = 1
        while self._accept(mark.text):
            count += 1
        node = self._member(self._primary())
        # An even number of signs cancels out.
        return Call(mark.at, f"{mark.text}_", [node]) if count % 2 else node

    def _member(self, node: Node) -> Node:
        while self._is(".", "["):
            mark = self._next_token()
            if mark.text == "[":
                optional = self._accept("?") is not None
                index = self._expression()
                self._close("]")
                node = Call(mark.at, "_[?_]" if optional else "_[_]", [node, index])
            else:
                node = self._selection(node, mark)
        return node

    def _selection(self, node: Node, mark: Token) -> Node:
        optional = self._accept("?") is not None
        token = self._next_token()
        if token.kind == "escaped":
            name = token.text[1:-1]
        elif token.kind == "name" and token.text not in ("in", "true", "false", "null"):
            name = token.text
        else:
            expected = "{IDENTIFIER, ESC_IDENTIFIER}" if optional else "{'?', IDENTIFIER, ESC_IDENTIFIER}"
            self._fail(token, f"mismatched input '{token.text}' expecting {expected}")
        if optional:
            return Call(mark.at, "_?._", [node, Literal(token.at, name)])
        bracket = self._accept("(") if token.kind == "name" else None
        if bracket is None:
            return Select(mark.at, node, name)
        return self._expand(Call(bracket.at, name, self._arguments(), node))

    def _arguments(self) -> list[Node]:
        if self._accept(")"):
            return []
        args = [self._expression()]
        while self._accept(","):
            args.append(self._expression())
        self._close(")")
        return args

    def _expand(self, call: Call) -> Node:
        try:
            return expand_global(call) if call.target is None else expand_member(call)
        except MacroError as error:
            self._report(error.at, str(error))
            return call

    def _primary(self) -> Node:
        token = self._next_token()
        if token.kind in ("int", "uint", "float", "string", "bytes"):
            return self._literal(token)
        if token.kind == "name" and token.text in _LITERALS:
            return Literal(token.at, _LITERALS[token.text])
        if token.kind == "name" and token.text != "in":
            return self._named(token)
        if token.kind == "sign":
            if token.text == "." and self._token.kind == "name":
                return self._named(self._next_token())
            if token.text == "(":
                node = self._expression()
                self._close(")")
                return node
            if token.text == "[":
                return self._list(token)
            if token.text == "{":
                return self._map(token)
        return self._fail(token, f"mismatched input '{token.text}' expecting {_EXPECTED}")

    def _literal(self, token: Token, *, negative: bool = False) -> Node:
        try:
            if negative and token.kind == "int":
                return Literal(token.at, _negative(token))
            value = literal_value(token)
        except LiteralError as error:
            self._report(token.at, str(error))
            return Literal(token.at, 0)
        return Literal(token.at, -value if negative else value)

    def _named(self, token: Token) -> Node:
        if token.text in RESERVED:
            self._report(token.at, f"reserved identifier: {token.text}")
        bracket = self._accept("(")
        if bracket is not None:
            return self._expand(Call(bracket.at, token.text, self._arguments()))
        name = Ident(token.at, token.text)
        return self._message(name) or name

    def _message(self, name: Node) -> Node | None:
        """Parse `some.Type{...}`, if that follows."""
        place = self._place
        while self._accept("."):
            if self._token.kind != "name":
                break
            name = Select(self._token.at, name, self._next_token().text)
        brace = self._accept("{")
        if brace is None:
            self._place = place
            return None
        fields: list[tuple[str, Node, bool]] = []
        while not self._is("}"):
            optional = self._accept("?") is not None
            key = self._next_token()
            self._close(":")
            fields.append((key.text.strip("`"), self._expression(), optional))
            if not self._accept(","):
                break
        self._close("}")
        return Struct(brace.at, qualified_name(name), fields)

    def _list(self, bracket: Token) -> Node:
        elements: list[Node] = []
        optional = set()
        while not self._is("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._accept(","):
                break
        self._close("]")
        return ListNode(bracket.at, elements, frozenset(optional))

    def _map(self, brace: Token) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while not self._is("}"):
            optional = self._accept("?") is not None
            key = self._expression()
            self._close(":")
            entries.append((key, self._expression(), optional))
            if not self._accept(","):
                break
        self._close("}")
        return MapNode(brace.at, entries)


def _balance(function: str, terms: list[Node], marks: list[int]) -> Node:
    if not marks:
        return terms[0]
    middle = len(marks) // 2
    left = _balance(function, terms[: middle + 1], marks[:middle])
    return Call(marks[middle], function, [left, _balance(function, terms[middle + 1 :], marks[middle + 1 :])])


def _negative(token: Token) -> int:
    return -integer_value(token.text, "int", 2**63 + 1)
