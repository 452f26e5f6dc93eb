"""The grammar of formulas: muParser's operators and their levels (feature_generation.md 3.5)."""

from __future__ import annotations

from typing import Final

from lark import Lark, Token, Tree
from lark.exceptions import LarkError, UnexpectedInput

MAX_LENGTH: Final = 10_000
MAX_DEPTH: Final = 100
"""Nesting of what one formula may hold; compiling goes down the tree."""

_GRAMMAR: Final = r"""
?start: choice
?choice: either
    | either "?" choice ":" choice
?either: both
    | either OR both                  -> binary
?both: bits
    | both AND bits                   -> binary
?bits: mask
    | bits BIT_OR mask                -> binary
?mask: comparison
    | mask BIT_AND comparison         -> binary
?comparison: sum
    | comparison COMPARE sum          -> binary
?sum: product
    | sum SIGN product                -> binary
?product: signed
    | product SCALE signed            -> binary
?signed: power
    | SIGN signed                     -> unary
?power: atom
    | atom POWER signed               -> binary
?atom: NUMBER                         -> number
    | NAME                            -> name
    | NAME "(" [choice ("," choice)*] ")" -> call
    | "(" choice ")"
OR: "||"
AND: "&&"
BIT_OR: "|"
BIT_AND: "&"
COMPARE: "<=" | ">=" | "==" | "!=" | "<" | ">"
SIGN: "+" | "-"
SCALE: "*" | "/"
POWER: "^"
NUMBER: /(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?/
NAME: /[^\W\d]\w*/
%ignore /[ \t\r\n]+/
"""

_PARSER: Final = Lark(_GRAMMAR, parser="lalr", maybe_placeholders=False)


def parse(text: str) -> Tree[Token]:
    """The tree of a formula; raise ValueError that shows where it cannot be read."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"it has {len(text)} characters, at most {MAX_LENGTH} are read")
    try:
        tree = _PARSER.parse(text)
    except UnexpectedInput as error:
        raise ValueError(
            f"it cannot be read at column {error.column}: {text[max(0, error.column - 1) :][:20]!r}"
        ) from None
    except LarkError as error:
        raise ValueError(f"it cannot be read: {error}") from None
    _refuse_deep(tree)
    return tree


def _refuse_deep(tree: Tree[Token]) -> None:
    level: list[Tree[Token]] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
