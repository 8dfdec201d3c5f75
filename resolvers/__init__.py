"""What psi's own graph knows, one small module per attribute namespace.

Declares attributes and the resolvers that provide them, on top of ``psi.graph`` and read models. Never starts a task,
never writes, and sees neither the engine nor a face. The first namespaces arrive with the service they describe.
"""

__all__: list[str] = []
