"""Values assigned to a name that denotes a secret, in whatever syntax.

`DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, `name: API_KEY` above `value: …`, `<password>…</password>`. The
name sets how much the value must look like a secret: a password may be short, a value of `cache_key` is random.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.shape import Span
from windowpane.core.redaction.values import (
    is_access_token,
    is_environment_password,
    is_named_password,
    is_strong_token,
    is_symbolic,
    is_token,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from windowpane.core.redaction.literals import Occurrences


class SecretName(NamedTuple):
    """A name of secrets: their kind, and the judgement of a value."""

    kind: str
    is_secret: Callable[[str], bool]


_PASSWORD: Final = SecretName("password", is_named_password)
_ENVIRONMENT_PASSWORD: Final = SecretName("password", is_environment_password)
_TOKEN: Final = SecretName("secret", is_token)
_ACCESS_TOKEN: Final = SecretName("secret", is_access_token)
_WEAK: Final = SecretName("secret", is_strong_token)

_NAMES: Final = {
    **dict.fromkeys(("password", "passwd", "passwort", "passphrase", "passcode", "pwd", "psk"), _PASSWORD),
    **dict.fromkeys(("secret", "token", "credential", "apikey", "webhook"), _TOKEN),
    "pat": _ACCESS_TOKEN,
    **dict.fromkeys(("pass", "cred", "auth", "key", "dsn", "jwt", "hmac"), _WEAK),
}
"""Stem of a name in lower case to what its values are; a longer name overrides its beginning."""
_STEMS: Final = {
    **{stem: stem for stem in _NAMES if stem != "pat"},
    **{f"pat{end}": "pat" for end in "\"'`=: \t\\]>_-,|│┃║"},
}
"""Literal to the stem at its start. One is searched for with the character behind it: most texts have paths."""
LITERALS: Final = tuple(_STEMS)
COLUMN_STEMS: Final = frozenset(
    ("key", *(stem for stem, name in _NAMES.items() if stem in _STEMS and name is not _WEAK))
)
"""Stems of the names of columns with secrets."""
_WHOLE_STEMS: Final = frozenset(("pass", "cred", "auth", "key", "dsn", "jwt", "pat", "hmac", "psk", "pwd"))
"""Stems that are part of other words: `path`, `author`, `keyword`."""
_KEY_BEFORE: Final = re.compile(
    r"(?:api|access|secret|private|auth|signing|sign|sig|encryption|encrypt|crypto|master|shared|account|storage|service"
    r"|license|app|application|client|consumer|subscription|deploy|admin|webhook|hmac|aes|jwt|write|read|ingest(?:ion)?"
    r"|integration|routing|server|session|cookie|security|function|host|root|data|user|merchant|account|partner|vault"
    r"|token|password|recovery|backup|totp|otp|seed|wallet|eth|rsa|ssl|tls|ssh|pgp|gpg|bot|sdk|project|team|org"
    r"|sas|policy|primary|secondary|instrumentation|telemetry|connection)[ _.-]?\Z"
)
"""Words before `key` that make it a secret."""
_NOT_SECRET_BEFORE: Final = re.compile(
    r"(?<![a-z])(?:public|publishable|foreign|cache|sort|partition|idempotency|dedup|group|object|row|map|hash|primary"
    r"|lock|next|page|nextpage|nextcursor|continuation|cursor|max|min|num|total|input|output|prompt|completion|cached|per|of|stop|pad|eos|bos"
    r"|unk|mask|id|by|new|reserved|used)[ _.-]?\Z"
)
_KEY_OF_COLUMN: Final = re.compile(r"(?<![a-z])(?:api|access|secret|private|auth|signing|encryption)[ _.-]?\Z")
"""Words before `key` that make a column of a table one of secrets: many tables have keys."""
_SUFFIX: Final = re.compile(r"(?:[_-]?[A-Za-z0-9]{1,24}){1,3}+")
_NOT_SECRET_AFTER: Final = re.compile(
    r"[_-]?(?:ids?|names?|files?|paths?|types?|urls?|uri|refs?|count|len|length|size|limits?|usage|expir\w*|ttl|hint"
    r"|fields?|labels?|arn|versions?|manager|polic\w+|reset|prompt|form|inputs?|page|store|cost|price|budget|used"
    r"|window|index|max|min|algorithm|alg|rotation|provider|scopes?|codes?|notes?|ring|chain|per|rate|ratio|at|to)"
    r"(?![a-z])",
    re.IGNORECASE,
)
"""Words after a name that make it the name of something else: `token_count`, `secretName`."""
_FOLLOWS_NAME: Final = frozenset("\"'`=: \t\\>]{?,-\r\n|│┃║<*")
BREAK: Final = r"(?:\r?(?:\n|\\{1,4}n)(?:[+>]| {0,6}\d{1,6}(?:\t|\\{1,4}t|→)|\d{4}-\d\d-\d\dT[0-9:.]{8,20}Z)?)"
"""The end of a line, also within JSON, and what a listing, a difference or a log puts before the next one."""
_OPERATOR: Final = re.compile(
    r"\\{0,3}[\"'`]?\*{0,3}\]?"
    r"(?::\s{0,2}(?:&(?:'[a-z]{1,12} )?)?[A-Za-z][\w.\[\]|]{0,24}\??(?=\s{0,2}=\s))?"
    r"[ \t]{0,20}(?::=|=>|->|={1,3}|:(?!:)|(?<=[\"'`]),)\s{0,8}"
    r"\*{0,2} ?"
    rf"(?:(?:[|>][+-]?(?:[ \t]{{0,4}}+{BREAK})?|!!?[a-z]{{1,12}}|&[\w-]{{1,40}}|\?)\s{{1,16}})?"
)
"""Operator between a name and its value: `=`, `":`, `=>`, `: str =`, `",` in a call, the `|` of a YAML block,
its tag or its anchor."""
_PAIR: Final = re.compile(
    rf"\\{{0,3}}[\"'`]?[ \t]{{0,4}}+,?[ \t]{{0,8}}+{BREAK}?+"
    r"\s{0,40}+,?\s{0,40}+[\[{-]{0,2}+\s{0,8}+\\{0,3}[\"'`]?(?:[A-Za-z]{0,12}value|val|default|content|plain)\\{0,3}[\"'`]?"
    r"\s{0,4}[:=]\s{0,4}",
    re.IGNORECASE,
)
"""The name is itself a value: `name: X`, `value: …` on the next line, in JSON and in XML attributes."""
_NESTED: Final = re.compile(
    r"\\{0,3}[\"'`]?\s{0,2}[:=]?\s{0,2}\{\s{0,40}(?:[\"'\\a-z_]{1,16}\s{0,4}[:=]\s{0,4}[\"'\\a-z]{1,16},?\s{1,40}){0,4}"
    r"\\{0,3}[\"'`]?(?:value|default|plaintext|secretstring)\\{0,3}[\"'`]?\s{0,4}[:=]\s{0,4}",
    re.IGNORECASE,
)
"""The value is a field of an object: `"adminPassword": {"value": …}`, `variable "token" { default = … }`."""
_OPTION: Final = re.compile(
    r"[\"'`]?(?:\s{1,3}--[a-z-]{1,24}(?:[ =][\w.-]{1,40})?)??"
    r"\s{1,3}(?:-b|--(?:body|value|data|secret-string|plaintext))[ =]{1,2}"
)
"""A command line with name and value: `gh secret set NAME --body …`."""
_TAG: Final = re.compile(r"(?:\s[^<>\n]{0,80})?>\s{0,8}(?:<!\[CDATA\[)?(?=[^<>\n]{4,512}<|[^<>\n]{4,512}\]\]>)")
"""An element of XML or HTML."""
_NEXT_ELEMENT: Final = re.compile(
    rf"</[\w:.-]{{1,40}}>{BREAK}?+\s{{0,40}}<[A-Za-z][^<>\n]{{0,80}}>(?=[^<>\n]{{4,512}}<)"
)
"""The element behind the one that holds the name: `<key>…</key> <string>…</string>`."""
_PROSE: Final = re.compile(
    r"(?:\s(?:for|to|of|on|in|at)\s[\w@./' -]{1,40}?)??\s{1,2}"
    r"(?:is|was|will be|to|as|now|provided|supplied|given)\s?:?\s{1,2}(?=[^\s])",
    re.IGNORECASE,
)
_CELL: Final = re.compile(r"[\"'`*_]{0,3}[ \t]{0,40}[|│┃║][ \t]{0,4}")
"""The next cell of a table."""
_FIELD: Final = re.compile(r"[\"'`)\]]{1,4}\.(?:send_?keys|fill|type|set_?value)\(\s?", re.IGNORECASE)
"""A call that types the value into a field of this name."""
_BLANK: Final = re.compile(r"[\"'`]?[ \t]{1,4}(?=[^\s=:|│┃║>])")
_CONNECTIONS: Final = {
    **dict.fromkeys("\"'`\\", (_OPERATOR, _PAIR, _NESTED, _OPTION, _CELL, _FIELD, _BLANK)),
    " ": (_OPERATOR, _PAIR, _NESTED, _TAG, _OPTION, _CELL, _BLANK, _PROSE),
    ":": (_OPERATOR, _NESTED),
    "=": (_OPERATOR, _NESTED),
    "-": (_OPERATOR, _PAIR),
    "]": (_OPERATOR,),
    ",": (_PAIR,),
    "[": (_PAIR,),
    "{": (_PAIR, _NESTED),
    ">": (_TAG,),
    **dict.fromkeys("|│┃║", (_CELL,)),
    "<": (_NEXT_ELEMENT,),
    "*": (_OPERATOR,),
}
"""Connections of a name with its value, by their first character; a blank is any white space."""
_SCHEME: Final = re.compile(
    r"(?:(?:bearer|basic|token|api-?key|bot|key|splunk|ssws|negotiate|genie-?key)\s{1,2})?", re.IGNORECASE
)
_WRAPPER: Final = re.compile(r"(?:[A-Za-z_][\w.]{0,31}\((?=[\"'`\\bru]))?(?:[bBrRfFuU@](?=[\"']))?")
_QUOTED: Final = re.compile(
    r"\\{0,3}(?:\"(?P<double>[^\"\n\\]{3,512})|'(?P<single>[^'\n\\]{3,512})|`(?P<back>[^`\n\\]{3,512}))"
)
_UNQUOTED: Final = re.compile(r"(?P<bare>[^\s\"'`,;&<>(){}\[\]\\|]{4,512}+)(?![\[(])")
_SYMBOLIC: Final = re.compile(r"(?:[^\s\"'`,;&<>{}\[\]\\|]|&(?![\w.%-]{1,64}=)){20,512}+")
"""A value with parentheses or an ampersand, which most often are those of an expression."""
_CONTINUED: Final = re.compile(
    r"(?:&(?![&>\s]|[A-Za-z]{1,8};|#x?[0-9A-Fa-f]{1,7};|[\w.%-]{1,64}=)[^\s\"'`,;&<>(){}\[\]\\|]{1,256}+){1,8}"
)
"""An ampersand within a value: neither one before the next parameter nor an operator of the shell."""
_REST: Final = re.compile(r"[^\s\"'`,;&<>(){}\[\]\\|]*+")
_PARENTHESES: Final = frozenset("()&")
_TRAILING: Final = ".:,!?"
_JUDGED_CHARACTERS: Final = 128
_LOOKBACK: Final = 24
_FLAG: Final = re.compile(
    r"(?:(?:^|[\s\"'`\[(,])--?(?:[a-z0-9]+[-_.]){0,4}|(?<!\w)(?:ENV|setx|set -[a-z]{1,3})[ \t]{1,4}\w{0,12})\Z",
    re.IGNORECASE,
)
"""Before a name whose value follows after a blank: an option, or a command that sets a variable."""


def named_spans(text: str, folded: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the values in *text* whose names denote a secret.

    *folded* is the text in lower case, *occurrences* are the literals in it.
    """
    for literal, positions in occurrences.items():
        stem = _STEMS.get(literal)
        if stem is not None:
            yield from _values(stem, _NAMES[stem], positions, text, folded)


def column_named(stem: str, text: str, folded: str, start: int) -> SecretName | None:
    """Return the name of secrets with this stem at *start* if it is the head of a column; None if it is not."""
    name, before = _NAMES[stem], folded[max(0, start - _LOOKBACK) : start].replace("\\t", "\t")
    if stem == "key":
        return _TOKEN if _KEY_OF_COLUMN.search(before) else None
    if stem in _WHOLE_STEMS and not _is_whole(stem, text, start):
        return None
    return None if name is _TOKEN and _NOT_SECRET_BEFORE.search(before) else name


def _values(stem: str, name: SecretName, positions: Sequence[int], text: str, folded: str) -> Iterator[Span]:
    after = 0
    for position in positions:
        if position >= after:
            span = _value_of(stem, name, text, folded, start=position, end=position + len(stem))
            if span is not None:
                yield span
                after = span.end


def _is_whole(stem: str, text: str, start: int) -> bool:
    """Return True for `smtpPass` and `MAP_KEY`, but not for `bypass` and `COMPAT`."""
    if stem == "key" or start == 0 or not text[start - 1].isalnum():
        return True
    return text[start].isupper() and (stem != "pat" or text[start - 1].islower())


def _value_of(stem: str, name: SecretName, text: str, folded: str, *, start: int, end: int) -> Span | None:
    name_end = _end_of_name(stem, text, start, end)
    connections = [] if name_end is None else _connections(text, name_end)
    if not connections:
        return None
    before = folded[max(0, start - _LOOKBACK) : start]
    if stem == "key" and _KEY_BEFORE.search(before):
        name = _TOKEN
    elif name is not _PASSWORD and _NOT_SECRET_BEFORE.search(before):
        return None
    elif stem == "pass":
        name = _PASSWORD
    if name is _PASSWORD and name_end != end:
        name = _TOKEN
    for between, position in connections:
        required = name
        if name is _PASSWORD and between is _OPERATOR and text[start:end].isupper() and "=" in text[end:position]:
            required = _ENVIRONMENT_PASSWORD
        elif (
            between is _CELL
            or (between is _BLANK and not _FLAG.search(text, max(0, start - _LOOKBACK), start))
            or (between is _PROSE and name is not _PASSWORD)
        ):
            required = _strict(name)
        span = _judged(text, position, required)
        if span is not None:
            return span
    return None


def _end_of_name(stem: str, text: str, start: int, end: int) -> int | None:
    """Return where the name with this stem ends, or None if it is not the name of a secret."""
    following = text[end : end + 1]
    if following.islower() or (stem in _WHOLE_STEMS and not _is_whole(stem, text, start)):
        return None
    if not following.isalnum() and following not in ("_", "-"):
        return end if following in _FOLLOWS_NAME else None
    suffix = _SUFFIX.match(text, end)
    return None if suffix is None or _NOT_SECRET_AFTER.match(text, end) else suffix.end()


def _connections(text: str, end: int) -> list[tuple[re.Pattern[str], int]]:
    """Return what connects the name that ends at *end* to a value, and where the value starts."""
    first = text[end : end + 1]
    possible = _CONNECTIONS.get(" " if first.isspace() else first, ())
    return [(between, match.end()) for between in possible if (match := between.match(text, end))]


def _strict(name: SecretName) -> SecretName:
    return SecretName(name.kind, is_token) if name.kind == "password" else name


def _judged(text: str, position: int, name: SecretName) -> Span | None:
    """Return the value at *position* if it is a secret."""
    scheme = _SCHEME.match(text, position)
    position = scheme.end() if scheme else position
    wrapper = _WRAPPER.match(text, position)
    position = wrapper.end() if wrapper else position
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        group = quoted.lastgroup or "double"
        start, end = quoted.span(group)
        inner = _SCHEME.match(text, start)
        start = inner.end() if inner and inner.end() < end else start
        value = text[start:end]
        if " " in value.strip() or not name.is_secret(value[:_JUDGED_CHARACTERS]):
            return None
        return Span(start, 1, end, name.kind)
    return _bare(text, position, name)


def _bare(text: str, position: int, name: SecretName) -> Span | None:
    """Return the value without quotation marks at *position* if it is a secret."""
    bare = _UNQUOTED.match(text, position)
    is_cut = bare is None or text[bare.end() : bare.end() + 1] in _PARENTHESES
    if is_cut and (symbolic := _symbolic(text, position, name)):
        return symbolic
    if bare is None:
        return None
    continued = _CONTINUED.match(text, bare.end())
    if continued is not None and name.is_secret(text[position : continued.end()][:_JUDGED_CHARACTERS]):
        return Span(position, 1, continued.end(), name.kind)
    value = bare["bare"].rstrip(_TRAILING)
    if not name.is_secret(value[:_JUDGED_CHARACTERS]):
        return None
    end = position + len(value)
    rest = _REST.match(text, end)
    whole = rest.end() if rest else end
    return Span(position, 1, end if text[end:whole].strip(_TRAILING) == "" else whole, name.kind)


def _symbolic(text: str, position: int, name: SecretName) -> Span | None:
    """Return the value at *position* that contains parentheses or an ampersand, if it is a secret."""
    run = None if name is _WEAK else _SYMBOLIC.match(text, position)
    if run is None:
        return None
    value = run[0]
    if value.count(")") > value.count("("):
        value = value.removesuffix(")")  # of the call that the assignment stands in
    judged = value[:_JUDGED_CHARACTERS].removeprefix("$")
    if _PARENTHESES.isdisjoint(judged) or not (name.is_secret(judged) and is_symbolic(judged)):
        return None
    return Span(position, 1, position + len(value), name.kind)
