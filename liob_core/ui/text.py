"""Text of models and users, made harmless; kept in `rendering`, since files need it too."""

from liob_core.rendering.text import as_html, literal, markdown_html, visible

__all__ = ["as_html", "literal", "markdown_html", "visible"]
