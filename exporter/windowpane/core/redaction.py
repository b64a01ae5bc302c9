"""Redaction of secrets in text before it is stored: each becomes `[redacted:kind]`.

The time is linear in the length of any text. A rule is a literal, located by substring search, and a pattern that
is tried only at the literal. No pattern requires anything after an unbounded run, runs are possessive, and a
pattern that could match inside its own run may only start at the edge of a word, so each character is examined a
fixed number of times. Most texts contain none of the literals and cost only the searches.

Secrets without a fixed shape (`password = …`) are recognized by their value: it must look random, unlike a word,
a type or an expression, so that source code stays readable. A secret that is an ordinary word is not recognized.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets."""

    text: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of replaced secrets by kind; empty for a clean text."""


class _Span(NamedTuple):
    start: int
    rank: int
    """Of spans with the same start the lower rank names the kind: a known shape before an assignment."""
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    literals: tuple[str, ...]
    """Each starts a match; in lower case when *fold* is set."""
    pattern: re.Pattern[str]
    """Matched at the literal; only its group `secret` is replaced, if it has one."""
    at_edge: bool = False
    """True if the literal must not be inside a longer word (`task-`, `xeyJ`)."""
    needs_digit: bool = False
    """True if a match without any digit is a word (`sk-spinner-double-bounce`), not a secret."""
    fold: bool = False


def _rule(kind: str, literals: str, pattern: str, **options: bool) -> _Rule:
    flags = re.IGNORECASE if options.get("fold") else 0
    return _Rule(kind, tuple(literals.split("|")), re.compile(pattern, flags), **options)


_KEY = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_KEY_TEXT = r"[A-Za-z0-9+/=\s\\:,.→]"
_KEY_BODY = rf"(?=(?:{_KEY_TEXT}|-(?!----)){{20}}){_KEY_TEXT}*+(?:-(?!----){_KEY_TEXT}*+){{0,1000}}"
"""Headers contain dashes. No possessive group: Python before 3.11.5 loses a character at the end of one."""
_KEY_END = r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"

_RULES = (
    _rule("private_key", "-----BEGIN ", _KEY + _KEY_BODY + _KEY_END),
    _rule("anthropic_key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    _rule("openai_key", "sk-", r"sk-(?!ant-)[A-Za-z0-9_-]{20,}+", at_edge=True, needs_digit=True),
    _rule("github_token", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_[A-Za-z0-9]{36,}+"),
    _rule("github_token", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,}+"),
    _rule("gitlab_token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}+"),
    _rule("aws_access_key", "AKIA|ASIA", r"A[KS]IA[A-Z0-9]{16}[A-Za-z0-9_-]*+", at_edge=True),
    _rule("google_key", "AIza", r"AIza[A-Za-z0-9_-]{35,}+"),
    _rule("google_token", "ya29.", r"ya29\.[A-Za-z0-9_-]{20,}+", at_edge=True),
    _rule("google_secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    _rule("slack_token", "xox|xapp-", r"x(?:ox[abeoprs]|app)-[A-Za-z0-9-]{10,}+"),
    _rule(
        "slack_webhook",
        "hooks.slack.com/services/",
        r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9]{6,}+/[A-Za-z0-9]{6,}+/[A-Za-z0-9]{16,}+)",
    ),
    _rule("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{30,}+", at_edge=True),
    _rule("npm_token", "npm_", r"npm_[A-Za-z0-9]{36,}+", at_edge=True),
    _rule("pypi_token", "pypi-AgE", r"pypi-AgE[A-Za-z0-9_-]{30,}+"),
    _rule("stripe_key", "sk_live_|sk_test_|rk_live_|rk_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}+"),
    _rule("stripe_key", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}+"),
    _rule("sendgrid_key", "SG.", r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+", at_edge=True),
    _rule("groq_key", "gsk_", r"gsk_[A-Za-z0-9]{40,}+", at_edge=True),
    _rule("xai_key", "xai-", r"xai-[A-Za-z0-9]{40,}+", at_edge=True),
    _rule("nvidia_key", "nvapi-", r"nvapi-[A-Za-z0-9_-]{40,}+", at_edge=True),
    _rule("perplexity_key", "pplx-", r"pplx-[A-Za-z0-9]{32,}+", at_edge=True),
    _rule("replicate_token", "r8_", r"r8_[A-Za-z0-9]{32,}+", at_edge=True),
    _rule("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}+", at_edge=True),
    _rule("tavily_key", "tvly-", r"tvly-[A-Za-z0-9-]{24,}+", at_edge=True, needs_digit=True),
    _rule("databricks_token", "dapi", r"dapi[0-9a-f]{32}[A-Za-z0-9_-]*+", at_edge=True),
    _rule(
        "digitalocean_token", "dop_v1_|doo_v1_|dor_v1_", r"do[opr]_v1_[0-9a-f]{64}[A-Za-z0-9_-]*+", at_edge=True
    ),
    _rule("docker_token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_-]{20,}+"),
    _rule("vault_token", "hvs.|hvb.", r"hv[bs]\.[A-Za-z0-9_-]{24,}+", at_edge=True),
    _rule("grafana_token", "glsa_", r"glsa_[A-Za-z0-9_]{32,}+", at_edge=True),
    _rule("atlassian_token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{40,}+"),
    _rule("linear_key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}+", at_edge=True),
    _rule(
        "shopify_token", "shpat_|shpss_|shpca_", r"shp(?:at|ss|ca)_[0-9a-fA-F]{32}[A-Za-z0-9_-]*+", at_edge=True
    ),
    _rule("supabase_key", "sbp_", r"sbp_[0-9a-f]{40}[A-Za-z0-9_-]*+", at_edge=True),
    _rule("twilio_key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])", at_edge=True, needs_digit=True),
    _rule("telegram_token", ":AA", r":AA[A-Za-z0-9_-]{33,}+", needs_digit=True),
    _rule("age_key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50}[A-Za-z0-9_-]*+"),
    _rule(
        "cookie",
        "cookie:",
        r"(?:set-)?cookie:\s{0,4}[^\s=;,\"'\\]{1,64}+=(?P<secret>[A-Za-z0-9._~+/%=-]{16,}+)",
        needs_digit=True,
        fold=True,
    ),
    _rule(
        "jwt",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?",
        at_edge=True,
    ),
    _rule(
        "url_password",
        "://",
        r"://[^\s/?#@:'\"`<>\[\]\\]{0,128}+:(?P<secret>(?![$%{<*])[^\s/@'\"`<>\[\]\\]{1,256}+)@",
    ),
    _rule(
        "authorization",
        "bearer|basic",
        r"(?:bearer|basic)\s{1,4}(?P<secret>[A-Za-z0-9._~+/=-]{16,}+)",
        at_edge=True,
        needs_digit=True,
        fold=True,
    ),
)

_DISCORD_TAIL = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+")
_DISCORD_HEAD = re.compile(r"(?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){5,6}(?:[MNO][A-Za-z0-9]{1,2})?")
"""A user's number of 17 to 19 digits in Base64; it has no fixed start, so the tail of a token is found first."""
_DISCORD_HEAD_CHARACTERS = (26, 24, 23)
"""Lengths of 19, 18 and 17 digits in Base64."""

_PASSWORD_NAMES = ("password", "passwd", "passphrase")
_ASSIGNED_NAMES = (
    *_PASSWORD_NAMES,
    *("secret", "token", "credential", "apikey", "api_key", "api-key", "access_key", "access-key", "accesskey"),
    *("secret_key", "secretkey", "private_key", "privatekey", "accountkey", "auth_key"),
)
_ASSIGNMENT = re.compile(
    r"\\{0,3}[\"'`]?\s{0,4}(?::=|=>|=|:)\s{0,4}\\{0,3}[\"'`]?"
    r"(?P<secret>[^\s\"'`,;&<>(){}\[\]$\\|]{6,64}+)(?!\[)"
)
"""A value before an index is an expression and does not match."""
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,31}+\(")
_VALUE_REST = re.compile(r"[^\s\"'`,;&<>(){}\[\]$\\|]*+")
_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[^\W\d_]")
_SYMBOL = re.compile(r"[!@#%^*?~]")
_PLAIN_WORD = re.compile(r"[A-Za-z]*\d{0,2}")
_WORD_EDGES = re.compile(r"[._/:@#=-]+")

_MIN_PASSWORD_CHARACTERS = 6
_MIN_VALUE_CHARACTERS = 16
_MIN_DISTINCT_CHARACTERS = 8
_MAXIMUM_PASSES = 8
"""A secret that ends where another one starts is found once that one is replaced."""


_Item = TypeVar("_Item")
_Guarded = tuple[tuple[str, tuple[tuple[str, _Item], ...]], ...]


def _guarded(literals: Iterable[tuple[str, _Item]], *guards: str) -> _Guarded[_Item]:
    """*literals* grouped by the first of *guards* they contain, so that one search can rule out many."""
    groups: dict[str, list[tuple[str, _Item]]] = {}
    for literal, item in literals:
        guard = next((guard for guard in guards if guard in literal), literal)
        groups.setdefault(guard, []).append((literal, item))
    return tuple((guard, tuple(members)) for guard, members in groups.items())


def _literals(*, fold: bool) -> list[tuple[str, _Rule]]:
    return [(literal, rule) for rule in _RULES if rule.fold is fold for literal in rule.literals]


_CASED_LITERALS = _guarded(_literals(fold=False), "_", "-")
_FOLDED_LITERALS = _guarded(_literals(fold=True))
_NAME_LITERALS = _guarded([(name, name in _PASSWORD_NAMES) for name in _ASSIGNED_NAMES], "key", "pass")


def _present(guarded: _Guarded[_Item], text: str) -> list[tuple[str, _Item]]:
    """Return the literals that occur in *text*, with the item of each."""
    return [pair for guard, pairs in guarded if guard in text for pair in pairs if pair[0] in text]


def redact(text: str) -> Redaction:
    """Replace every secret in *text*; a text without secrets is returned as the same string.

    Redacting twice changes nothing more. A replacement is at most 32 characters longer than its secret.
    """
    counts: Counter[str] = Counter()
    for _ in range(_MAXIMUM_PASSES):
        spans = _merged(sorted(_spans(text)))
        if not spans:
            break
        parts: list[str] = []
        position = 0
        for span in spans:
            parts += (text[position : span.start], f"[redacted:{span.kind}]")
            position = span.end
        text = "".join([*parts, text[position:]])
        counts.update(span.kind for span in spans)
    return Redaction(text, counts)


def _spans(text: str) -> list[_Span]:
    folded = _fold(text)
    spans: list[_Span] = []
    for literal, rule in _present(_CASED_LITERALS, text):
        spans += _shaped(rule, literal, text, text)
    for literal, rule in _present(_FOLDED_LITERALS, folded):
        spans += _shaped(rule, literal, text, folded)
    spans += _discord_tokens(text)
    for name, password in _present(_NAME_LITERALS, folded):
        spans += _assigned(name, text, folded, password=password)
    return spans


def _shaped(rule: _Rule, literal: str, text: str, haystack: str) -> Iterator[_Span]:
    """Secrets of a known shape."""
    position = haystack.find(literal)
    while position >= 0:
        after = position + 1
        if not rule.at_edge or _at_edge(text, position):
            match = rule.pattern.match(text, position)
            if match and (not rule.needs_digit or _DIGIT.search(match[0])):
                start, end = match.span("secret" if "secret" in rule.pattern.groupindex else 0)
                yield _Span(start, 0, end, rule.kind)
                after = end
        position = haystack.find(literal, after)


def _discord_tokens(text: str) -> Iterator[_Span]:
    for tail in _DISCORD_TAIL.finditer(text):
        for characters in _DISCORD_HEAD_CHARACTERS:
            start = tail.start() - characters
            if start >= 0 and _at_edge(text, start) and _DISCORD_HEAD.fullmatch(text, start, tail.start()):
                yield _Span(start, 0, tail.end(), "discord_token")
                break


def _assigned(name: str, text: str, folded: str, *, password: bool) -> Iterator[_Span]:
    """Values assigned to a name that denotes a secret."""
    position = folded.find(name)
    while position >= 0:
        after = position + len(name)
        match = _ASSIGNMENT.match(text, after)
        called = match and _CALL.match(text, match.start("secret"))
        if match and not called and _is_random(match["secret"], password=password):
            rest = _VALUE_REST.match(text, match.end())
            after = rest.end() if rest else match.end()
            yield _Span(match.start("secret"), 1, after, "password" if password else "secret")
        position = folded.find(name, after)


def _is_random(value: str, *, password: bool) -> bool:
    """Return True if an assigned *value* is a secret and not a word, a number, a type or an expression.

    Words joined by dots, underscores or slashes are names of things (`process.env.API_KEY_2`), however long.
    """
    if not _LETTER.search(value):
        return False
    if not _DIGIT.search(value):
        return password and _SYMBOL.search(value) is not None
    if all(_PLAIN_WORD.fullmatch(part) for part in _WORD_EDGES.split(value.replace("_", "."))):
        return password and value.isalnum()
    if password:
        return len(value) >= _MIN_PASSWORD_CHARACTERS
    return len(value) >= _MIN_VALUE_CHARACTERS and len(set(value)) >= _MIN_DISTINCT_CHARACTERS


def _at_edge(text: str, position: int) -> bool:
    """Return True if no word continues into *position*.

    An escaped line break (`\\n` in JSON) and the last line of a private key end a word too.
    """
    before = text[max(0, position - 5) : position]
    if not before or not (before[-1].isalnum() or before[-1] in "_-"):
        return True
    return before == "-----" or before.endswith(("\\n", "\\r", "\\t"))


def _fold(text: str) -> str:
    """Return *text* in lower case with unchanged positions."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(map(_fold_character, text))


def _fold_character(character: str) -> str:
    folded = character.lower()
    return folded if len(folded) == 1 else character


def _merged(spans: list[_Span]) -> list[_Span]:
    """Join overlapping spans of sorted *spans*."""
    merged: list[_Span] = []
    for span in spans:
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
