"""The base of the documents that commands print with `--json`."""

from __future__ import annotations

from typing import Any, Self, get_type_hints

from pydantic import BaseModel, create_model


class Document(BaseModel):
    """A JSON document."""

    @classmethod
    def of(cls, row: object, **added: Any) -> Self:
        """Return the document of a row, with the fields that are *added* to those of the row.

        Values are not validated: a store may hold names that a later release has written.
        """
        values = {name: getattr(row, name) for name in cls.model_fields if name not in added}
        return cls.model_construct(**values, **added)


def document_of(row: type, **added: Any) -> type[Document]:
    """Return the document with the fields of a row and *added* ones, by their types."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in {**get_type_hints(row), **added}.items()}
    return create_model(f"{row.__name__}Document", __base__=Document, **fields)
