"""Secrets composed from grammars: a documented token or a password policy, in a document, behind an encoding.

Unlike `made_up_secrets`, no context is a template: a document is a random list of ordinary fields with the secret
at a random position, written by the syntax's own writer where Python has one (`csv`, `json`, `shlex`,
`xml.sax.saxutils`, `configparser`), then shown as tools show it, then encoded. Names are not those of the token's
provider: any name of its sort is combined with any token. Every combination of sort, document and encoding
belongs to one of two halves by its digest: rules may be tuned on the half `TUNED`; only the other is reported.
"""

from __future__ import annotations

import base64
import configparser
import csv
import gzip
import hashlib
import hmac
import html
import io
import json
import random
import shlex
import string
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
URL = ALNUM + "_-"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
SYMBOLS = "!#$%&*+-.:=?@^_~"
TUNED, HELD_OUT = 0, 1


class Part(NamedTuple):
    """A text and the part of it that must not remain."""

    text: str
    hidden: str


class Composed(NamedTuple):
    """One secret in one document behind one encoding."""

    sort: str
    document: str
    encoding: str
    text: str
    hidden: str


Random = random.Random
Document = Callable[[Random, str, str], Part]
Encoding = Callable[[Random, Part], Part]


def of(rng: Random, alphabet: str, size: int) -> str:
    return "".join(rng.choice(alphabet) for _ in range(size))


def unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def checked(rng: Random, prefix: str, size: int) -> str:
    """A token of GitHub's and npm's form: random characters and their CRC-32 in base 62."""
    body = of(rng, ALNUM, size)
    number, digits = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return prefix + body + digits


def jwt(rng: Random) -> str:
    header = unpadded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": of(rng, HEX, 8)}).encode())
    claims = unpadded(json.dumps({"sub": of(rng, string.digits, 9), "exp": rng.randrange(2**31)}).encode())
    signature = hmac.new(rng.randbytes(32), f"{header}.{claims}".encode(), hashlib.sha256).digest()
    return f"{header}.{claims}.{unpadded(signature)}"


SHAPED: tuple[Callable[[Random], str], ...] = (
    lambda rng: checked(rng, rng.choice(("ghp_", "gho_", "ghs_")), 30),
    lambda rng: checked(rng, "npm_", 30),
    lambda rng: f"github_pat_{of(rng, ALNUM, 22)}_{of(rng, ALNUM, 59)}",
    lambda rng: f"glpat-{unpadded(rng.randbytes(20))}.01.{of(rng, string.ascii_lowercase + string.digits, 9)}",
    lambda rng: f"sk-ant-api03-{of(rng, URL, 93)}AA",
    lambda rng: f"sk-proj-{of(rng, URL, 74)}T3BlbkFJ{of(rng, URL, 74)}",
    lambda rng: f"sk_live_51{of(rng, ALNUM, 97)}",
    lambda rng: f"xoxb-{rng.randrange(10**11, 10**12)}-{rng.randrange(10**12, 10**13)}-{of(rng, ALNUM, 24)}",
    lambda rng: f"AKIA{of(rng, string.ascii_uppercase + '234567', 16)}",
    lambda rng: f"AIzaSy{of(rng, URL, 33)}",
    lambda rng: f"SG.{unpadded(rng.randbytes(16))}.{unpadded(rng.randbytes(32))}",
    lambda rng: f"hf_{of(rng, string.ascii_letters, 34)}",
    lambda rng: f"shpat_{of(rng, HEX, 32)}",
    lambda rng: f"dop_v1_{rng.randbytes(32).hex()}",
    lambda rng: f"pypi-AgEIcHlwaS5vcmc{unpadded(rng.randbytes(110))}",
    lambda rng: f"hvs.CAESI{unpadded(rng.randbytes(66))}",
    lambda rng: f"dapi{rng.randbytes(16).hex()}",
    lambda rng: f"glsa_{of(rng, ALNUM, 32)}_{of(rng, HEX, 8)}",
    jwt,
)
"""Tokens that are recognizable anywhere, as their providers document them."""
RANDOM: tuple[Callable[[Random], str], ...] = (
    lambda rng: rng.randbytes(16).hex(),
    lambda rng: rng.randbytes(20).hex(),
    lambda rng: rng.randbytes(32).hex(),
    lambda rng: base64.b64encode(rng.randbytes(30)).decode(),
    lambda rng: base64.b64encode(rng.randbytes(32)).decode(),
    lambda rng: unpadded(rng.randbytes(32)),
    lambda rng: of(rng, ALNUM, rng.randint(20, 48)),
)
"""Generated keys without a shape: `openssl rand`, `secrets.token_urlsafe`, and the like."""
WORDS = [
    "river",
    "amber",
    "copper",
    "winter",
    "falcon",
    "harbor",
    "meadow",
    "orbit",
    "pepper",
    "saddle",
    "timber",
    "velvet",
    "walnut",
    "zephyr",
]
PASSWORDS: dict[str, Callable[[Random], str]] = {
    "password of a manager": lambda rng: (
        of(rng, ALNUM, 5)
        + str(rng.randrange(10))
        + of(rng, ALNUM + SYMBOLS, rng.randint(6, 14))
        + of(rng, ALNUM, 2)
    ),
    "password with #": lambda rng: f"{of(rng, ALNUM, 3)}{rng.randrange(10)}#{of(rng, ALNUM, rng.randint(5, 9))}",
    "password with a word": lambda rng: (
        f"{of(rng, string.ascii_letters, 3)}{rng.randrange(100)}{rng.choice('-_.!')}"
        f"{rng.choice(('here', 'sample', 'example', 'your', 'insert', 'replace', 'fake'))}{rng.choice('-_.!')}"
        f"{of(rng, ALNUM, 6)}"
    ),
    "password of a person": lambda rng: (
        f"{rng.choice(WORDS).title()}{rng.choice(('', '@', '-'))}{rng.randint(1960, 2026)}{rng.choice('!?*$#')}"
    ),
    "passphrase": lambda rng: "-".join([*rng.sample(WORDS, 4), str(rng.randrange(10, 99))]),
}
PASSWORD_NAMES = (
    "POSTGRES_PASSWORD", "db_password", "spring.datasource.password", "MYSQL_PASSWORD", "dbPassword", "smtp_password",  # noqa: E501
    "REDIS_PASSWORD", "password", "passwd", "admin-password", "keystorePassword", "PGPASSWORD", "root_password",
)  # fmt: skip
TOKEN_NAMES = (
    "API_KEY", "apiKey", "api_token", "ACCESS_TOKEN", "client_secret", "clientSecret", "auth_token", "SECRET_KEY",
    "webhook.secret", "x-api-key", "signing_secret", "encryption_key", "service-token", "private_token",
)  # fmt: skip
PLAIN_NAMES = ("value", "config", "data", "arg", "note", "id", "input", "ref")
"""Names that do not announce a secret: only a shape gives it away."""
ORDINARY: tuple[tuple[str, Callable[[Random], str]], ...] = (
    ("host", lambda rng: f"{rng.choice(WORDS)}.example.net"),
    ("port", lambda rng: str(rng.randrange(1024, 65536))),
    ("region", lambda rng: rng.choice(("eu-west-1", "us-east-2"))),
    ("log_level", lambda rng: rng.choice(("debug", "info"))),
    ("retries", lambda rng: str(rng.randrange(9))),
    ("owner", lambda rng: rng.choice(WORDS)),
    ("timeout_seconds", lambda rng: str(rng.randrange(5, 90))),
    ("image", lambda rng: f"acme/{rng.choice(WORDS)}:1.{rng.randrange(30)}"),
)


def fields(rng: Random, name: str, secret: str) -> list[tuple[str, str]]:
    """Ordinary fields with the secret among them."""
    chosen = [(key, make(rng)) for key, make in rng.sample(ORDINARY, rng.randint(1, 5))]
    chosen.insert(rng.randint(0, len(chosen)), (name, secret))
    return chosen


def lines(form: Callable[[str, str], str], head: str = "") -> Document:
    """A document of one line a field."""

    def write(rng: Random, name: str, secret: str) -> Part:
        before, _, behind = form("", "x\0x").replace("\\x00", "\0").replace("\\u0000", "\0").partition("\0")
        hidden = form("", secret)[len(before) - 1 : 1 - len(behind) or None]
        text = head + "".join(f"{form(key, value)}\n" for key, value in fields(rng, name, secret))
        return Part(text, secret if secret in text else hidden)

    return write


def json_text(rng: Random, name: str, secret: str) -> Part:
    document: object = dict(fields(rng, name, secret))
    for _ in range(rng.randrange(3)):
        document = {rng.choice(WORDS): document}
    return Part(json.dumps(document, indent=rng.choice((None, 2, 4))), json.dumps(secret)[1:-1])


def ini(rng: Random, name: str, secret: str) -> Part:
    parser = configparser.RawConfigParser()
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser[rng.choice(WORDS)] = dict(fields(rng, name, secret))
    file = io.StringIO()
    parser.write(file)
    return Part(file.getvalue(), secret)


def csv_table(separator: str) -> Document:
    """A table with one column of secrets and texts that need quoting."""

    def write(rng: Random, name: str, secret: str) -> Part:
        header = ["id", "owner", "comment", name]
        rng.shuffle(header)
        rows = [
            {"id": str(number), "owner": rng.choice(WORDS), name: "",
             "comment": rng.choice((f"a{separator} b", 'he said "no"', "plain", "two\nlines"))}
            for number in range(rng.randint(2, 6))
        ]  # fmt: skip
        rng.choice(rows[1:])[name] = secret
        file = io.StringIO()
        writer = csv.DictWriter(file, header, delimiter=separator, lineterminator=rng.choice(("\n", "\r\n")))
        writer.writeheader()
        writer.writerows(rows)
        return Part(file.getvalue(), secret.replace('"', '""'))

    return write


def table(edge: str, gap: str) -> Document:
    """A table of Markdown, or as `psql` prints it."""

    def write(rng: Random, name: str, secret: str) -> Part:
        rows = [["id", name, "owner"], ["1", secret, rng.choice(WORDS)], ["2", "", rng.choice(WORDS)]]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        text = [
            edge + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + edge[::-1]
            for row in rows
        ]
        text.insert(1, edge + gap.join("-" * width for width in widths) + edge[::-1])
        return Part("\n".join(text) + "\n", secret)

    return write


def sql(rng: Random, name: str, secret: str) -> Part:
    chosen = fields(rng, name, secret)
    columns = ", ".join(f"`{key}`" for key, _ in chosen)
    values = ",".join("'" + value.replace("'", "''") + "'" for _, value in chosen)
    return Part(f"LOCK TABLES `users` WRITE;\nINSERT INTO `users` ({columns}) VALUES ({values});\n", secret)


def kubernetes_data(rng: Random, name: str, secret: str) -> Part:
    data = base64.b64encode(secret.encode()).decode()
    rest = "".join(f"  {key}: {base64.b64encode(make(rng).encode()).decode()}\n" for key, make in ORDINARY[:2])
    return Part(f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ndata:\n{rest}  {name}: {data}\n", data)


def one_line(form: Callable[[str, str], str]) -> Document:
    """A line or statement with the name and the secret."""
    return lambda rng, name, secret: Part(form(name, secret), secret)


def url(form: str) -> Document:
    """A URL that carries the secret, percent-encoded as it must be."""
    return lambda rng, name, secret: Part(
        form.format(name=name, secret=quote(secret, safe="")), quote(secret, safe="")
    )


def shell(form: str) -> Document:
    return lambda rng, name, secret: Part(
        form.format(name=name.replace(".", "_").replace("-", "_"), secret=shlex.quote(secret)), secret
    )


DOCUMENTS: dict[str, Document] = {
    "env file": lines(lambda key, value: f"{key}={value}"),
    "env file, quoted": lines(lambda key, value: f'{key}="{value}"'),
    "TOML": lines(lambda key, value: f"{key.replace('.', '_')} = {json.dumps(value)}", "[service]\n"),
    "INI": ini,
    "properties": lines(lambda key, value: f"{key}: {value}".replace(": ", " = "), "# settings\n"),
    "YAML": lines(lambda key, value: f"  {key}: {value}", "service:\n"),
    "YAML, quoted": lines(lambda key, value: f"  {key}: '{value}'", "service:\n"),
    "YAML, flow": lambda rng, name, secret: Part(
        "{" + ", ".join(f"{key}: {json.dumps(value)}" for key, value in fields(rng, name, secret)) + "}",
        json.dumps(secret)[1:-1],
    ),
    "YAML, block": lines(lambda key, value: f"  {key}: |-\n    {value}", "data:\n"),
    "JSON": json_text,
    "shell": shell("set -e\nexport {name}={secret}\n./run\n"),
    "command": shell("{name}={secret} make deploy"),
    "Dockerfile": lines(lambda key, value: f"ENV {key}={json.dumps(value)}", "FROM debian\n"),
    "compose": lines(lambda key, value: f"      - {key}={value}", "services:\n  app:\n    environment:\n"),
    "systemd": lines(lambda key, value: f'Environment="{key}={value}"', "[Service]\n"),
    "Terraform": lines(
        lambda key, value: f"  {key.replace('.', '_')} = {json.dumps(value)}", 'provider "acme" {\n'
    ),
    "Kubernetes env": lines(lambda key, value: f"  - name: {key}\n    value: {json.dumps(value)}", "env:\n"),
    "Kubernetes data": kubernetes_data,
    "CI log": lines(lambda key, value: f"2026-03-01T10:00:00.1234567Z   {key}: {value}", "##[group]Run make\n"),
    "logfmt": lambda rng, name, secret: Part(
        "level=info msg=start " + " ".join(f"{key}={value}" for key, value in fields(rng, name, secret)), secret
    ),
    "curl header": shell("curl -s https://api.example.net/v1 -H 'Authorization: Bearer '{secret}"),
    "curl data": lambda rng, name, secret: Part(
        f"curl -d {shlex.quote(json_text(rng, name, secret).text)} https://api.example.net", json.dumps(secret)[1:-1]  # noqa: E501
    ),
    "curl user": shell("curl -u deploy:{secret} https://api.example.net/{name}"),
    "flag": shell("acme login --region eu --{name} {secret} --yes"),
    "SQL dump": sql,
    "SQL statement": one_line(lambda name, secret: f"ALTER USER app WITH PASSWORD '{secret}';"),
    "Python locals": lines(lambda key, value: f"    {key} = {value!r}", 'File "/app/db.py", line 12, in connect\n'),  # noqa: E501
    "Python repr": lambda rng, name, secret: Part(f"ValueError: {dict(fields(rng, name, secret))!r}", secret),
    "Java exception": lambda rng, name, secret: Part(
        "java.lang.IllegalStateException: Settings("
        + ", ".join(f"{key}={value}" for key, value in fields(rng, name, secret))
        + ")\n\tat com.acme.Main.run(Main.java:12)\n",
        secret,
    ),
    "Go value": lambda rng, name, secret: Part(
        "panic: &{" + " ".join(f"{key}:{value}" for key, value in fields(rng, name, secret)) + "}", secret
    ),
    "HTTP header": lines(
        lambda key, value: f"{key.replace('_', '-').replace('.', '-')}: {value}\r", "POST /v1 HTTP/1.1\r\n"
    ),
    "URL query": url("GET https://api.example.net/v1?page=2&{name}={secret}&sort=asc 200"),
    "URL user": url("connecting to postgres://app:{secret}@db.example.net:5432/{name}"),
    "form": url("grant_type=password&username=app&{name}={secret}"),
    "CSV": csv_table(","),
    "CSV, semicolons": csv_table(";"),
    "TSV": csv_table("\t"),
    "Markdown table": table("| ", " | "),
    "psql table": table(" ", "-+-"),
    "XML": lines(
        lambda key, value: f"  <{key.replace('.', '-')}>{escape(value)}</{key.replace('.', '-')}>", "<settings>\n"
    ),
    "XML attributes": lines(lambda key, value: f"  <add key={quoteattr(key)} value={quoteattr(value)}/>", "<s>\n"),  # noqa: E501
    "plist": lines(lambda key, value: f"<key>{key}</key>\n<string>{escape(value)}</string>", "<dict>\n"),
    "PowerShell": one_line(lambda name, secret: f"$env:{name.replace('.', '_').replace('-', '_')} = '{secret}'"),
    "JavaScript": lines(lambda key, value: f"  '{key}': {json.dumps(value)},", "module.exports = {\n"),
    "Markdown list": lines(lambda key, value: f"- **{key}**: `{value}`"),
    "message": one_line(lambda name, secret: f"Please use the {name} {secret} for the staging account."),
    "netrc": one_line(lambda name, secret: f"machine api.example.net\n  login deploy\n  password {secret}\n"),
    "file name": one_line(lambda name, secret: f"saved to /tmp/{name}-{secret}.txt"),
    "tool name": one_line(lambda name, secret: secret),
}  # fmt: skip


def charwise(encode: Callable[[str], str]) -> Encoding:
    """An encoding of each character by itself."""
    return lambda rng, part: Part(encode(part.text), encode(part.hidden))


def whole(encode: Callable[[bytes], str], frame: str) -> Encoding:
    """An encoding of the whole text, none of which may remain."""

    def write(rng: Random, part: Part) -> Part:
        encoded = encode(part.text.encode())
        return Part(frame.format(encoded), encoded)

    return write


def broken(mark: str) -> Encoding:
    """A line break, as the syntax continues one, in the middle of the secret; the longer half must not remain."""

    def write(rng: Random, part: Part) -> Part:
        middle = len(part.hidden) // 2
        head, tail = part.hidden[:middle], part.hidden[middle:]
        return Part(part.text.replace(part.hidden, f"{head}{mark}{tail}"), tail)

    return write


def each_line(prefix: str) -> Encoding:
    return lambda rng, part: Part("".join(f"{prefix}{line}" for line in part.text.splitlines(True)), part.hidden)


ENCODINGS: dict[str, Encoding] = {
    "none": lambda rng, part: part,
    "JSON string": charwise(lambda text: json.dumps(text)[1:-1]),
    "JSON string twice": charwise(lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1]),
    "\\u escapes": charwise(lambda text: "".join(f"\\u{ord(character):04x}" for character in text)),
    "\\u escapes of symbols": charwise(
        lambda text: "".join(c if c.isalnum() or c in " \n_" else f"\\u{ord(c):04x}" for c in text)
    ),
    "\\x escapes": charwise(lambda text: "".join(f"\\x{ord(character):02x}" for character in text)),
    "HTML entities": charwise(lambda text: html.escape(text, quote=True)),
    "numeric HTML entities": charwise(lambda text: "".join(f"&#{ord(character)};" for character in text)),
    "hexadecimal HTML entities": charwise(
        lambda text: "".join(c if c.isalnum() or c.isspace() else f"&#x{ord(c):x};" for c in text)
    ),
    "percent": charwise(lambda text: quote(text, safe="")),
    "Base64": whole(lambda data: base64.b64encode(data).decode(), "echo {} | base64 -d"),
    "Base64 in lines": whole(lambda data: base64.encodebytes(data).decode().rstrip(), "begin\n{}\nend"),
    "hexadecimal": whole(bytes.hex, "xxd: {}"),
    "hexadecimal in capitals": whole(lambda data: data.hex().upper(), "0x{}"),
    "gzip and Base64": whole(lambda data: base64.b64encode(gzip.compress(data, mtime=0)).decode(), "data={}"),
    "zlib and Base64": whole(lambda data: base64.b64encode(zlib.compress(data)).decode(), "blob: {}"),
    "shell continuation": broken("\\\n"),
    "colors": lambda rng, part: Part(
        part.text.replace(part.hidden, f"\x1b[33m{part.hidden}\x1b[0m"), part.hidden
    ),
    "numbered lines": lambda rng, part: Part(
        "".join(f"{n:6}\t{line}" for n, line in enumerate(part.text.splitlines(True), 1)), part.hidden
    ),
    "diff": each_line("+"),
    "quotation": each_line("> "),
    "CI times": each_line("2026-03-01T10:00:00.1234567Z "),
}

_LINED = frozenset({"numbered lines", "diff", "quotation", "CI times"})
"""Presentations of lines, for documents whose lines are independent of each other."""
_TABLES = frozenset({"CSV", "CSV, semicolons", "TSV", "psql table", "Markdown table"})
_SHAPED_ONLY = frozenset({"file name", "tool name", "message"})
"""Documents without a name beside the secret, or with prose around it."""
_OF_PASSWORDS = frozenset({"SQL statement", "curl user", "URL user", "netrc"})


def _half(*parts: str) -> int:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=1).digest()[0] & 1


def _sorts(rng: Random) -> Iterator[tuple[str, str, str]]:
    """Yield a sort of secrets with a name and a secret of it."""
    yield "token", rng.choice(TOKEN_NAMES), rng.choice(SHAPED)(rng)
    yield "token, plain name", rng.choice(PLAIN_NAMES), rng.choice(SHAPED)(rng)
    yield "generated key", rng.choice(TOKEN_NAMES), rng.choice(RANDOM)(rng)
    for sort, make in PASSWORDS.items():
        yield sort, rng.choice(PASSWORD_NAMES), make(rng)


def composed(number: int, half: int) -> Iterator[Composed]:
    """Yield one secret for each combination of a *half*, drawn by *number*."""
    rng = random.Random(number * 2 + half)
    for document, write in DOCUMENTS.items():
        for encoding, encode in ENCODINGS.items():
            if encoding in _LINED and document in _TABLES:
                continue
            for sort, name, secret in _sorts(rng):
                is_shaped = sort.startswith("token")
                if (document in _SHAPED_ONLY and not is_shaped) or (
                    document in _OF_PASSWORDS and is_shaped and document != "URL user"
                ):
                    continue
                if _half(document, encoding, sort) != half:
                    continue
                part = encode(rng, write(rng, name, secret))
                yield Composed(sort, document, encoding, part.text, part.hidden)


def remains(case: Composed, text: str) -> bool:
    """Return True if a third of the secret, at least six characters, is still in *text*."""
    size = max(6, len(case.hidden) // 3)
    outside = case.text.replace(case.hidden, "\0")
    pieces = {case.hidden[at : at + size] for at in range(max(1, len(case.hidden) - size + 1))}
    return any(piece in text and piece not in outside for piece in pieces)
