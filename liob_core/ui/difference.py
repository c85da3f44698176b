"""Where an answer departs from the reference's; kept in `rendering`, since files need it too."""

from liob_core.rendering.difference import marked_html

__all__ = ["marked_html"]
