"""``/openapi.json``: every HTTP endpoint, for programs. Made from the declarations that the endpoints themselves use.

Describes; checks nothing. What is accepted is decided where a request is carried out.
"""

from psi.faces.openapi.document import OpenApiFace, document

__all__ = ["OpenApiFace", "document"]
