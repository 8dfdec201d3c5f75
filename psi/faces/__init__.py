"""How the outside reaches psi: HTTP, EQL, GraphQL, sockets, logins. Parse, call the service, render.

    wire       bodies, errors and their statuses          guard      what no request gets past
    auth       who is asking                              login      the login page and the tokens
    app        all routes together                        server     the process that serves them

A face decides nothing about sessions or schedules, and says nothing about them that the service would not.
"""

__all__: list[str] = []
