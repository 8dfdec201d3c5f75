"""GraphQL: another syntax for the same graph, over HTTP and graphql-transport-ws.

    names       which attribute is which field          documents   parsed, measured, validated, kept
    types       entity types, scalars, enums            execute     graphql-core, with the graph for resolvers
    roots       queries, mutations, subscriptions       select      a selection as EQL, and the layout of its answer
    sources     where events come from                  operations  one operation, from its text to its answer
    channels    one execution for many followers        limits      what is told of one that asks for too much
    scalars     values on their way in                  values      and on their way out
    http, socket    the two transports

Decides nothing about sessions or schedules: root fields hand commands to the service, and what is below them is the
graph's.
"""

from psi.faces.graphql.face import GraphQLFace, sdl

__all__ = ["GraphQLFace", "sdl"]
