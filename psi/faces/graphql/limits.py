"""What is told of an operation that asks for more than it may, whether that is found out before it is executed or while
it is."""

from __future__ import annotations

from graphql import GraphQLError

__all__ = ["Limited"]


class Limited(GraphQLError):
    """An operation that asks for more than it may."""

    def __init__(self, code: str, message: str, **facts: int) -> None:
        super().__init__(message, extensions={"code": f"limit/{code}", **facts})
