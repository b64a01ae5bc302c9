"""Pages of the reference that are generated from the code: commands, configuration, events and the Python API."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import click
import msgspec

import windowpane
from windowpane.cli import main as command_line
from windowpane.config.schema import Config
from windowpane.core import codec
from windowpane.core.events import PAYLOADS, SCHEMA, EventContext
from windowpane.core.version import package_version

NEVER_WRITTEN = "text"
"""Field of blocks and facts that no stored event has."""


def files() -> Iterator[tuple[str, str]]:
    """Yield path below the site's sources and content of every generated file."""
    yield "reference/cli.md", commands()
    yield "reference/configuration-keys.md", configuration_keys()
    yield "reference/configuration.schema.json", _json(configuration_schema())
    yield "reference/events.md", events()
    yield "reference/events.schema.json", _json(event_schema())
    yield "reference/python.md", python_api()


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, default=str) + "\n"


# -- commands -------------------------------------------------------------------------------------------------


def commands() -> str:
    """Return the page of commands, each as its `--help` prints it."""
    parts = ["# Commands", "What each command does, with its options: the text of `--help`."]
    for path, command in _commands("windowpane", command_line):
        context = click.Context(command, info_name=path, terminal_width=100, max_content_width=100)
        parts += [f"## {path}", f"```text\n{command.get_help(context)}\n```"]
    return "\n\n".join(parts) + "\n"


def _commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from _commands(f"{path} {name}", subcommand)


# -- configuration --------------------------------------------------------------------------------------------


def configuration_schema() -> dict[str, Any]:
    """Return the JSON Schema of the configuration file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


def configuration_keys() -> str:
    """Return the page of configuration keys with type, default and environment variable."""
    schema = configuration_schema()
    rows = [
        f"| `{key}` | {kind} | {default} | `WINDOWPANE_{key.upper().replace('.', '__')}` |"
        for key, kind, default in _keys(schema, "", schema["$defs"])
    ]
    return "\n".join(
        [
            "# Configuration keys",
            "",
            (
                "Every key of the configuration file with its type, default and environment variable. "
                "[Configuration](../configuration.md) explains the ones that matter most. "
                "An editor checks the file with [its JSON Schema](configuration.schema.json)."
            ),
            "",
            "| key | type | default | variable |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _keys(schema: dict[str, Any], prefix: str, sections: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, field in schema["properties"].items():
        section = next((one["$ref"] for one in (field, *field.get("anyOf", ())) if "$ref" in one), None)
        if section is not None:
            yield from _keys(sections[_name(section)], f"{prefix}{name}.", sections)
        else:
            default = f"`{json.dumps(field['default'])}`" if field.get("default") is not None else "–"
            yield f"{prefix}{name}", _kind(field), default.replace("|", "\\|")


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _kind(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return f"a {_name(field['$ref'])}"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(one) for one in field["anyOf"]))
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    bounds = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    limits = [f"{relation} {field[key]:.15g}" for key, relation in bounds.items() if key in field]
    return ", ".join([str(field.get("type", "any")), *limits])


# -- events ---------------------------------------------------------------------------------------------------


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema of one event as it is stored and exported.

    A reader ignores fields that it does not know; a later release may add some.
    """
    envelope = _schema_of([EventContext])[0]["EventContext"]["properties"]
    payloads, shared = _payloads()
    properties = {
        **envelope,
        "n": {"type": "integer", "minimum": 0, "description": "Position in its stream."},
        "at": {"type": "number", "description": "Unix time in seconds."},
        "type": {"enum": sorted(PAYLOADS)},
        "event_id": {"type": "string", "description": "ULID."},
        "schema": {"type": "integer", "maximum": SCHEMA},
        "data": {"type": "object"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Windowpane event",
        "type": "object",
        "required": ["session_id", "n", "at", "type", "event_id", "schema", "data"],
        "properties": properties,
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}},
                "then": {"properties": {"data": {"$ref": f"#/$defs/{payloads[name]}"}}},
            }
            for name in sorted(PAYLOADS)
        ],
        "$defs": shared,
    }


def _schema_of(classes: list[type]) -> tuple[dict[str, Any], list[str]]:
    references, components = msgspec.json.schema_components(classes, ref_template="#/$defs/{name}")
    return components, [_name(reference["$ref"]) for reference in references]


def _payloads() -> tuple[dict[str, str], dict[str, Any]]:
    """Return type of event to name of its schema, and the schemas by name."""
    names = sorted(PAYLOADS)
    components, references = _schema_of([PAYLOADS[name] for name in names])
    for title, component in components.items():
        properties = component.get("properties", {})
        if title in ("Block", "FactOutcome"):
            properties.pop(NEVER_WRITTEN, None)
        component["required"] = [name for name in component.get("required", ()) if name in properties]
        for name in properties.keys() & set(codec._INFINITE):
            properties[name] = {"anyOf": [properties[name], {"const": "inf"}]}
    payloads = dict(zip(names, references, strict=True))
    return {**payloads, "block.added": "Block"}, components  # written without a separate level


def events() -> str:
    """Return the page of event types with their fields."""
    payloads, components = _payloads()
    parts = [
        "# Events",
        (
            "The content of an event. Each is one JSON object: the fields of its context (`session_id`, `agent`, "
            "`model`, `turn`, `window_id` and others), its position `n`, its time `at`, its `type`, and its own "
            "fields under `data`. `windowpane audit export` writes them. A program checks them with "
            f"[the JSON Schema](events.schema.json), version {SCHEMA}."
        ),
    ]
    for name in sorted(PAYLOADS):
        component = components[payloads[name]]
        required = set(component.get("required", ()))
        rows = [
            f"| `{field}` | {_event_kind(schema)} | {'yes' if field in required else 'no'} |"
            for field, schema in component["properties"].items()
        ]
        about = inspect.cleandoc(PAYLOADS[name].__doc__ or "").split("\n\n")[0].replace("\n", " ")
        table = ["| field | type | always there |", "| --- | --- | --- |", *rows] if rows else ["No fields."]
        parts += [f"## {name}", about, "\n".join(table)]
    return "\n\n".join(parts) + "\n"


def _event_kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_event_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_event_kind(schema['items'])}" if schema.get("items") else "list"
    return f"`{schema['const']}`" if "const" in schema else str(schema.get("type", "any"))


# -- Python ---------------------------------------------------------------------------------------------------


def python_api() -> str:
    """Return the page of public names with signature and docstring."""
    parts = [
        "# Python API",
        f"Every name that `import windowpane` offers in {package_version()}. What is not here is private.",
    ]
    for name in sorted(set(windowpane.__all__) - {"__version__"}, key=str.lower):
        parts += [f"## {name}", *_described(name, getattr(windowpane, name))]
    return "\n\n".join(parts) + "\n"


def _described(name: str, value: Any) -> Iterator[str]:
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        yield f"```python\n{name} = {value}\n```"
        return
    yield _code(name, value)
    yield _doc(value)
    if inspect.isclass(value) and not issubclass(value, enum.Enum | BaseException):
        fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
        for member in vars(value):
            attribute = inspect.getattr_static(value, member)
            if member.startswith("_") or member in fields or not _doc(attribute):
                continue
            if isinstance(attribute, property):
                yield f"### {name}.{member}"
                yield _doc(attribute)
            elif inspect.isfunction(attribute) or isinstance(attribute, classmethod | staticmethod):
                yield f"### {name}.{member}"
                yield _code(member, getattr(value, member))
                yield _doc(attribute)


def _code(name: str, value: Any) -> str:
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        signature = "(…)"
    signature = re.sub(r"<[\w.]+ object at 0x[0-9a-f]+>|<factory>", "…", signature)
    signature = re.sub(r"((?:: |-> |\| ))'([^']+)'", r"\1\2", signature)
    if len(name + signature) > 100:
        signature = signature.replace(", ", ",\n    ").replace("(", "(\n    ", 1)
    return f"```text\n{name}{signature}\n```"


def _doc(value: Any) -> str:
    """Return a docstring as Markdown: sections of arguments keep their lines."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return re.sub(r"\n\n((?:[A-Z]\w+:\n)?(?: {4}.*\n?)+)", r"\n\n```text\n\1\n```\n", text).strip()
