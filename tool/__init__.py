"""psi-tool: requests and answers, and the command line.

Turns arguments into a request and an answer into text. Decides nothing about sessions or schedules, and imports heavy
libraries only where a command needs them: starting up is part of what a user waits for.
"""

__all__: list[str] = []
