"""Locations where only a secret can be: URLs, headers, cookies, statements and credential files.

Every run in a pattern is bounded or possessive and followed by nothing that could fail, so the time is linear.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.literals import positions_of
from windowpane.core.redaction.shape import Span
from windowpane.core.redaction.values import is_explicit, is_password, is_token

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator, Sequence

QUOTE: Final = r"\\{0,3}[\"'`]?"
"""A quotation mark, also within JSON, or none."""


class Location(NamedTuple):
    """A pattern around a secret, with the literals that it is searched by."""

    kind: str
    literals: tuple[str, ...]
    """In lower case; the pattern is tried at each."""
    pattern: re.Pattern[str]
    """Its group `secret` is judged and replaced."""
    is_secret: Callable[[str], bool]
    elsewhere: str = ""
    """A literal that the text contains, too."""

    def spans(self, positions: Sequence[int], text: str) -> Iterator[Span]:
        """Yield the secrets in *text* at this location, one of whose literals is at *positions*."""
        after = 0
        for position in positions:
            match = self.pattern.match(text, position) if position >= after else None
            if match is not None and self.is_secret(match["secret"]):
                yield Span(match.start("secret"), 2, match.end("secret"), self.kind)
                after = match.end("secret")


def is_random(value: str) -> bool:
    """Return True for an explicit value with a digit."""
    return any(character.isdigit() for character in value) and is_explicit(value)


def is_login(value: str) -> bool:
    """Return True for Base64 of `user:password`."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    return 0 < decoded.find(":") < len(decoded) - 1 and decoded.isprintable()


def is_credential(value: str) -> bool:
    """Return True for a long random value and for a login."""
    return (is_random(value) and len(value) >= 16) or is_login(value)


_LOGIN: Final = r"(?:(?i: login))?\s[^\n|;]{0,160}?(?<=\s)"
"""A command that takes a password, up to its option."""
_VALUE: Final = rf"{QUOTE}(?P<secret>(?![$<{{(-])[^\s\"'`<>\\,;|]{{5,128}}+)"
_FLAG_VALUE: Final = rf"[ =]?{_VALUE}"
_FILE_AND_USER: Final = r"\s{1,3}\S{1,128}+\s{1,3}\S{1,64}+\s{1,3}"
_READERS: Final = (
    r"--password-stdin|--with-token|-S\b|chpasswd|passwd --stdin|env add|secrets? (?:set|put|add|create|versions)"
)
"""Commands that read a password or a token from a pipe."""

COMMAND_LOCATIONS: Final = (
    Location(
        "login",
        (" -u", " --user", " --proxy-user", " -a ", " --auth", " --cred"),
        re.compile(
            rf" (?:-[uUa]|--(?:proxy-)?user|--auth|--creds?)(?:=|\s{{1,3}}|(?=[\"'])|(?=\w)){QUOTE}"
            r"[\w.@+\\-]{1,64}[:%](?P<quote>[\"'])?"
            r"(?P<secret>(?![$<{(\\/])(?(quote)[^\s\"'`\\]{3,200}+|[^\s\"'`<>|;&]{3,200}+))"
        ),
        lambda value: is_explicit(value) and not value.isdigit() and "/" not in value,
    ),
    Location(
        "password",
        (
            "sshpass",
            "mysql",
            "mariadb",
            "docker login",
            "podman login",
            "nerdctl login",
            "registry login",
            "oc login",
            "az login",
            "mongo",
            "7z",
            "bcp ",
            "cqlsh",
            "influx",
            "psexec",
            "sqlcmd",
            "unzip",
            "zip ",
        ),
        re.compile(rf"\w{{1,18}}+{_LOGIN}-[pP]{_FLAG_VALUE}"),
        is_password,
    ),
    Location("password", ("ldap",), re.compile(rf"(?i:ldap)\w{{0,8}}+{_LOGIN}-w{_FLAG_VALUE}"), is_password),
    Location("password", ("redis-cli",), re.compile(rf"(?i:redis-cli){_LOGIN}-a{_FLAG_VALUE}"), is_password),
    Location(
        "password",
        ("xfreerdp", "rdesktop", "mstsc"),
        re.compile(rf"\w{{5,12}}+{_LOGIN}/p:{_FLAG_VALUE}"),
        is_password,
    ),
    Location(
        "password",
        (" pass:",),
        re.compile(r"(?<=pass|ssin|sout|word) pass:(?P<secret>[^\s\"'`]{3,128}+)"),
        is_explicit,
    ),
    Location(
        "password",
        ("-storepass ", "-keypass ", "-srcstorepass ", "-deststorepass "),
        re.compile(rf"-[a-zA-Z]{{7,13}}{_FLAG_VALUE}"),
        is_explicit,
    ),
    Location("password", ("requirepass ", "masterauth "), re.compile(rf"\w{{10,11}}{_FLAG_VALUE}"), is_password),
    Location(
        "password",
        ("htpasswd ",),
        re.compile(rf"htpasswd\s-\w{{0,4}}b\w{{0,4}}{_FILE_AND_USER}{_VALUE}"),
        is_password,
    ),
    Location(
        "password",
        ("net use ",),
        re.compile(rf"(?i:net use) (?:[A-Za-z*]:? )?{QUOTE}\\\\[^\s\"']{{3,128}}+{QUOTE} {_VALUE}"),
        is_explicit,
    ),
    Location(
        "password",
        ("convertto-securestring ",),
        re.compile(
            r"(?i:convertto-securestring)(?: -(?i:string|asplaintext|force))* "
            rf"{QUOTE}(?P<secret>[^\"'\n]{{3,128}}+)"
        ),
        lambda value: is_explicit(value) and not value.startswith(("-", "$")),
    ),
    Location(
        "token",
        (" -u", " --user"),
        re.compile(rf" (?:-u|--user)[ =]?{QUOTE}(?P<secret>[\w.-]{{16,256}}+)(?=:(?:[\s\"']|\Z))"),
        is_token,
    ),
    Location(
        "password",
        ("echo ", "printf "),
        re.compile(
            rf"(?i:echo|printf)\s{{1,3}}(?:-n\s{{1,3}})?(?:[\"']?%s(?:\\n)?[\"']?\s{{1,3}})?{QUOTE}(?:[\w.-]{{1,32}}:(?=[^\n]{{1,200}}chpasswd))?"
            rf"(?P<secret>(?![$<{{(-])[^\s\"'`<>|]{{5,256}}+){QUOTE}\s{{0,3}}\|\s{{0,3}}(?:sudo\s{{1,3}})?(?=[^\n|]{{0,160}}(?:{_READERS}))"
        ),
        is_explicit,
    ),
)


if TYPE_CHECKING:
    from collections.abc import Iterator

    from windowpane.core.redaction.literals import Occurrences

_LOCATIONS: Final = (
    Location(
        "url_password",
        ("://",),
        re.compile(r"://[^\s/?#@:'\"`<>\[\]\\]{0,128}+:(?P<secret>(?![$%{<*])[^\s/@'\"`<>\[\]\\]{1,256}+)@"),
        lambda _: True,
    ),
    Location("url_token", ("://",), re.compile(r"://(?P<secret>[A-Za-z0-9_.~-]{20,256}+)@"), is_token),
    Location(
        "url_password",
        ("jdbc:oracle",),
        re.compile(r"(?i:jdbc:oracle):\w{1,10}:[^\s/@\"']{1,64}+/(?P<secret>[^\s@\"'<>]{3,128}+)@"),
        is_explicit,
    ),
    Location(
        "url_password",
        (
            "?password=",
            "&password=",
            ";password=",
            "?passwd=",
            "&passwd=",
            "?pass=",
            "&pass=",
            "_password=",
            "user_pass=",
        ),
        re.compile(r".(?i:user_)?(?i:password|passwd|pass)=(?P<secret>(?![$%{<])[^\s&;\"'`<>\\]{3,256}+)"),
        is_explicit,
    ),
    Location(
        "url_password",
        (";pwd=", "?pwd=", "&pwd=", "; pwd="),
        re.compile(r". ?(?i:pwd)=\{?(?P<secret>(?![$%<])[^\s&;\"'`<>\\{}]{3,256}+)"),
        is_explicit,
    ),
    Location(
        "authorization",
        ("authorization",),
        re.compile(
            rf"(?i:authorization){QUOTE}\s{{0,4}}[:=,]\s{{0,4}}{QUOTE}(?:[A-Za-z][A-Za-z-]{{2,24}}\s{{1,4}})?"
            r"(?:token=)?[\"']{0,2}(?P<secret>[A-Za-z0-9._~+/%=:|-]{8,4000}+)"
        ),
        lambda value: is_token(value[:512]) or is_login(value),
    ),
    Location(
        "authorization",
        ("authorization: bearer",),
        re.compile(r"(?i:authorization: bearer)\s{1,4}[\"']{0,2}(?P<secret>[^\s\"'`<>(){}\[\],;\\|$]{8,512}+)"),
        is_password,
    ),
    Location(
        "authorization",
        ("bearer ",),
        re.compile(rf"(?i:bearer)\s{{1,4}}{QUOTE}(?P<secret>[A-Za-z0-9._~+/=-]{{12,4000}}+)"),
        is_credential,
    ),
    Location(
        "authorization",
        ("basic ",),
        re.compile(rf"(?i:basic)\s{{1,4}}{QUOTE}(?P<secret>[A-Za-z0-9._~+/=-]{{12,4000}}+)"),
        is_credential,
    ),
    Location(
        "signature",
        ("signature=", "&sig=", "?sig=", "&sign=", ";sig="),
        re.compile(r".{0,2}?(?i:signature|sign|sig)=\\{0,3}\"?(?P<secret>[A-Za-z0-9+/%=_~-]{16,2000}+)"),
        is_random,
    ),
    Location(
        "signature",
        ("response=",),
        re.compile(r"(?i:response)=\\{0,3}\"(?P<secret>[A-Za-z0-9+/%=_~-]{16,2000}+)"),
        is_random,
        elsewhere="digest",
    ),
    Location(
        "login",
        ("login ", "login\n", "login\t"),
        re.compile(
            r"(?i:login)\s{1,8}\S{1,128}\s{1,40}(?:account\s{1,8}\S{1,128}\s{1,40})?password\s{1,8}(?P<secret>\S{3,256}+)"
        ),
        is_explicit,
    ),
    Location(
        "password",
        ("auth=(", "auth = (", "basicauth(", "basic_auth(", "authenticate("),
        re.compile(
            r"(?i:[a-z_]{4,12})(?: ?= ?)?\(\s{0,4}[\"'][^\"'\n]{1,64}[\"'],\s{0,4}"
            r"[\"'](?P<secret>[^\"'\n]{3,128}+)"
        ),
        is_explicit,
    ),
    Location(
        "password",
        ("login(",),
        re.compile(r"(?i:login)\(\s{0,4}[\"'][^\"'\n]{1,64}[\"'],\s{0,4}[\"'](?P<secret>[^\"'\n]{3,128}+)"),
        is_password,
    ),
    Location(
        "login",
        ('auth"', "auth'", 'auth\\"', "auth=", "auth:", "auth ="),
        re.compile(rf"(?i:auth){QUOTE}\s{{0,4}}[:=]\s{{0,4}}{QUOTE}(?P<secret>[A-Za-z0-9+/=_-]{{8,4000}}+)"),
        is_login,
    ),
    Location(
        "one_time_password",
        ("otpauth://",),
        re.compile(r"(?i:otpauth)://[^\s\"'<>]{1,200}?[?&]secret=(?P<secret>[A-Za-z2-7]{8,128}+)"),
        lambda _: True,
    ),
    Location(
        "recovery_phrase",
        ("mnemonic",),
        re.compile(
            rf"(?i:mnemonic){QUOTE}\s{{0,4}}(?:[:=]|is)\s{{0,4}}{QUOTE}"
            r"(?P<secret>[a-z]{3,8}(?: [a-z]{3,8}){11,23})"
        ),
        lambda _: True,
    ),
    Location(
        "recovery_phrase",
        ("seed phrase", "recovery phrase", "seed_phrase", "seedphrase", "secret phrase"),
        re.compile(
            rf"(?i:(?:seed|recovery|secret)[ _]?phrase){QUOTE}\s{{0,4}}(?:[:=]|is)\s{{0,4}}{QUOTE}"
            r"(?P<secret>[a-z]{3,8}(?: [a-z]{3,8}){11,23})"
        ),
        lambda _: True,
    ),
    Location(
        "password",
        ("identified by", "identified with", "with password", "encrypted password"),
        re.compile(
            r"\w{4,10}+(?i:\s(?:with\s\w{1,40}+\s)?(?:by|as|password))\s{1,4}(?i:password\s{1,4})?"
            r"(?P<quote>[\"'])(?P<secret>[^\"'\n]{3,128}+)"
        ),
        is_explicit,
    ),
    *COMMAND_LOCATIONS,
)

_PGPASS: Final = re.compile(
    r"(?P<line>[\w.*-]{1,128}+):(?:\d{4,5}|\*):[\w*-]{1,64}+:[\w.*@-]{1,64}+:(?P<secret>[^\s:\\]{3,128}+)"
)
_PGPASS_PORTS: Final = (":5432:", ":5433:", ":5439:", ":6432:", ":6543:", ":26257:", ":*:")
_COOKIES: Final = re.compile(
    r"(?:(?i:cookies?)[\"'\\]{0,4}\s{0,4}[:=, ]|curl [^\n|;]{0,160}?-b)\s{0,4}[\"'\\{]{0,5}"
    r"(?P<pairs>[^\n\"'\\]{8,8192}+)"
)
_COOKIE_PAIR: Final = re.compile(r"(?P<name>[^\s=;,]{1,64})=(?P<value>[^\s;,=]{8,4096}=*)")
_COOKIE_ATTRIBUTES: Final = frozenset(["path", "domain", "expires", "max-age", "samesite", "version", "priority"])
_COOKIE_FILE: Final = re.compile(r"\t(?:TRUE|FALSE)\t\d{1,12}\t[^\t\n]{1,64}\t(?P<secret>[^\s]{8,4096}+)")
_MANIFEST: Final = re.compile(r"kind[\"'\\]{0,4}\s{0,2}:\s{0,2}[\"'\\]{0,4}Secret(?![A-Za-z])")
_MANIFEST_DATA: Final = re.compile(r"(?:stringData|data)[\"'\\]{0,4}\s{0,2}:")
_MANIFEST_VALUE: Final = re.compile(
    r"[\w.\"'\\-]{1,80}:\s{0,3}(?:[|>][+-]?\s{1,12})?[\"'\\]{0,4}(?P<secret>[A-Za-z0-9+/_-]{4,16384}+={0,2})"
)
_MANIFEST_END: Final = re.compile(r"\n(?:---|[a-zA-Z])|\}|\\n(?:---|[a-zA-Z])")
_MANIFEST_CHARACTERS: Final = 20_000


_COOKIE_FILE_FLAGS: Final = ("\ttrue\t", "\tfalse\t")


def _by_literal() -> dict[str, tuple[Location, ...]]:
    """Return the locations by each of their literals."""
    groups: dict[str, tuple[Location, ...]] = {}
    for location in _LOCATIONS:
        for literal in location.literals:
            groups[literal] = (*groups.get(literal, ()), location)
    return groups


_BY_LITERAL: Final = _by_literal()
LITERALS: Final = (
    *_BY_LITERAL,
    "digest",
    *_PGPASS_PORTS,
    *_COOKIE_FILE_FLAGS,
    "cookie",
    "curl ",
    "secret",
    "kind",
)


def located_spans(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the secrets that their location gives away in *text* by the *occurrences* of literals in it."""
    for literal, positions in occurrences.items():
        for location in _BY_LITERAL.get(literal, ()):
            if not location.elsewhere or location.elsewhere in occurrences:
                yield from location.spans(positions, text)
    yield from _password_files(text, occurrences)
    yield from _cookies(text, occurrences)
    yield from _cookie_files(text, occurrences)
    if "secret" in occurrences and "kind" in occurrences:
        yield from _manifests(text, occurrences)


def _password_files(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the last fields of lines in the form of `.pgpass`: `host:port:database:user:password`."""
    for port in positions_of(_PGPASS_PORTS, occurrences):
        start = max(text.rfind("\n", max(0, port - 130), port) + 1, port - 128)
        line = _PGPASS.match(text, start)
        if line is not None and is_explicit(line["secret"]) and not line["secret"].isdigit():
            yield Span(line.start("secret"), 2, line.end("secret"), "password")


def _cookie_files(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the random values of a file of cookies, as curl writes it."""
    for position in positions_of(_COOKIE_FILE_FLAGS, occurrences):
        match = _COOKIE_FILE.match(text, position)
        if match is not None and is_random(match["secret"]):
            yield Span(match.start("secret"), 2, match.end("secret"), "cookie")


def _cookies(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the random values of `Cookie` and `Set-Cookie` headers."""
    after = 0
    for position in positions_of(("cookie", "curl "), occurrences):
        header = _COOKIES.match(text, position) if position >= after else None
        if header is None:
            continue
        after = header.end()
        for pair in _COOKIE_PAIR.finditer(text, *header.span("pairs")):
            value = pair["value"]
            if pair["name"].lower() not in _COOKIE_ATTRIBUTES and len(value) >= 12 and is_password(value):
                yield Span(pair.start("value"), 2, pair.end("value"), "cookie")


def _manifests(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the data of Kubernetes secrets, in YAML and JSON."""
    position = 0
    for kind in occurrences["kind"]:
        manifest = _MANIFEST.match(text, kind)
        if manifest is None:
            continue
        start = max(position, kind - 2_000)
        for data in _MANIFEST_DATA.finditer(text, start, manifest.end() + 2_000):
            limit = min(len(text), data.end() + _MANIFEST_CHARACTERS)
            end = _MANIFEST_END.search(text, data.end(), limit)
            for value in _MANIFEST_VALUE.finditer(text, data.end(), end.start() if end else limit):
                if is_explicit(value["secret"]):
                    yield Span(value.start("secret"), 2, value.end("secret"), "kubernetes_secret")
            position = end.start() if end else limit
