"""Secrets are replaced, everything else is unchanged, and no input makes that slow."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recorded_texts import recorded_texts
from tests.sampling import EVERYTHING

from windowpane.core.redaction import LONGEST_NAME_BYTES, join_split_secrets, redact, stored_id
from windowpane.core.redaction.values import is_gibberish

# Assembled here, so that no scanner takes this file for a leak.
ALNUM = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG"
BODY = ALNUM + "hJ6kL9"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
PEM = (
    "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow" + BODY + "\n" + BODY + "==\n-----END RSA " + "PRIVATE KEY-----"
)

SHAPED = {
    "anthropic_key": "sk-" + "ant-api03-" + BODY,
    "openai_key": "sk-" + "proj-" + BODY,
    "github_token": "ghp" + "_" + BODY,
    "gitlab_token": "glpat" + "-" + ALNUM,
    "aws_access_key": "AKIA" + "IOSFODNN7EXAMPLE",
    "google_key": "AIza" + BODY,
    "google_token": "ya29" + "." + BODY,
    "google_secret": "GOCSPX" + "-" + ALNUM,
    "slack_token": "xoxb" + "-1234567890-" + ALNUM,
    "huggingface_token": "hf" + "_" + BODY,
    "npm_token": "npm" + "_" + BODY,
    "pypi_token": "pypi" + "-AgEI" + BODY,
    "stripe_key": "sk" + "_live_" + ALNUM,
    "sendgrid_key": "SG" + "." + ALNUM[:22] + "." + BODY,
    "groq_key": "gsk" + "_" + BODY + ALNUM,
    "xai_key": "xai" + "-" + BODY + BODY,
    "nvidia_key": "nvapi" + "-" + BODY + BODY,
    "perplexity_key": "pplx" + "-" + BODY,
    "replicate_token": "r8" + "_" + BODY,
    "langsmith_key": "lsv2" + "_pt_" + BODY,
    "tavily_key": "tvly" + "-dev-" + ALNUM,
    "databricks_token": "dapi" + HEX,
    "digitalocean_token": "dop" + "_v1_" + HEX + HEX,
    "docker_token": "dckr" + "_pat_" + ALNUM,
    "vault_token": "hvs" + "." + BODY,
    "grafana_token": "glsa" + "_" + BODY,
    "atlassian_token": "ATATT3" + BODY + ALNUM,
    "linear_key": "lin" + "_api_" + BODY,
    "shopify_token": "shpat" + "_" + HEX,
    "supabase_key": "sbp" + "_" + HEX + HEX[:8],
    "age_key": "AGE-SECRET" + "-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE",
    "twilio_key": "SK" + HEX,
    "discord_token": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + ALNUM,
    "private_key": PEM,
}
"""One secret of each kind that its shape gives away."""

IN_CONTEXT = {
    "postgres://app:{}@db.example.com:5432/shop": ("url_password", "s3cr3t-pass"),
    "redis://:{}@cache/0": ("url_password", "hunter2"),
    "https://hooks.slack.com/services/{}": ("slack_webhook", "T0AAAAAAA/B0AAAAAAA/" + ALNUM),
    "Authorization: Bearer {}": ("authorization", ALNUM),
    "authorization: basic {}": ("authorization", "dXNlcjpwYXNzd29yZDEyMw=="),
    "bot123456789{}": ("telegram_token", ":AA" + "Hx1y2z3w4v5x1y2z3w4v5x1y2z3w4v5ab"),
    "Cookie: session={}": ("cookie", "a81f" + ALNUM),
    'password = "{}"': ("password", "Summer2024"),
    "PGPASSWORD={} psql": ("password", "tr0ub4dor&3"[:9]),
    '{{"db_password": "{}"}}': ("password", "correct!horse"),
    '{{\\"api_key\\": \\"{}\\"}}': ("secret", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
    "AWS_SECRET_ACCESS_KEY={}": ("secret", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1"),
    "client_secret: {}": ("secret", ALNUM),
    "AccountKey={};": ("secret", BODY + "=="),
    "| API_TOKEN | `{}` |": ("secret", ALNUM),
    "Incorrect API key provided: {}.": ("secret", ALNUM),
    "Here is the key: {}": ("secret", ALNUM),
    'const API_TOKEN: &\'static str = "{}";': ("secret", ALNUM),
    "api_token: &shared {}": ("secret", ALNUM),
    "ENV DB_PASSWORD {}": ("password", "winter2024"),
    "fish> set -gx DB_PASSWORD {}": ("password", "winter2024"),
    "setx DB_PASSWORD {}": ("password", "winter2024"),
    "find(By.ID, 'password').send_keys('{}')": ("password", "winter2024"),
    "page.fill('#password', '{}')": ("password", "winter2024"),
    "CREATE USER bob IDENTIFIED BY '{}';": ("password", "winter2024"),
    "ALTER ROLE bob WITH PASSWORD '{}'": ("password", "winter2024"),
    "curl https://api.example.com -u {}:": ("token", ALNUM),
    "echo {} | docker login -u bob --password-stdin": ("password", "winter2024"),
    "echo '{}' | sudo -S apt-get update": ("password", "winter2024"),
    "printf '%s' \"{}\" | gh secret set API_TOKEN": ("password", ALNUM),
    "echo 'root:{}' | chpasswd": ("password", "winter2024"),
    "htpasswd -cb /etc/nginx/htpasswd bob {}": ("password", "winter2024"),
    "keytool -list -keystore k.jks -storepass {}": ("password", "winter2024"),
    "net use Z: \\\\srv\\share {} /user:bob": ("password", "winter2024"),
    'ConvertTo-SecureString "{}" -AsPlainText -Force': ("password", "winter2024"),
    "requirepass {}": ("password", "winter2024"),
    "SECRET_KEY={} ./deploy.sh": ("secret", "Sg*1!qKZZ(QxJVTJqZkXV3gGjVSFZmM*3@JTr^cP8MX(6fL=!W"),
    "secret_key: {}\n": ("secret", "$m-eYw9)DkYk40^&fjCpDh+*(mq&vWs@pMe_&^re^vb8d20OW"),
    "app.secret.key={}\n": ("secret", ")+V7d9l)_hmvhQ#OkSK7!JA*wSO)D46LxwsSmLR*t!Rl1B#hP6"),
    "connect(secret_key={})": ("secret", "eBYIgEWOr)XPYyLx$9KK6(yIDcBJc-k3ZZgPcd%XdTG*BQrIUB"),
    "token: {}\n": ("secret", "Tr0ub4dor" + "&308"),
    "POSTGRES_PASSWORD={}": ("password", "correct-horse-battery"),
    "PASSWORD={}": ("password", "stone-my-rex-blue"),
    'postgres_password = "{}"': ("password", "letmein-please67"),
    "the postgres password is {} please use it": ("password", "letmein-please89"),
    "const azureDevopsPat = `{}`;": ("secret", HEX + "hj6kl9"),
    '{{"azureDevopsPat": "{}"}}': ("secret", HEX + "hj6kl9"),
    "AZURE_DEVOPS_PAT={}": ("secret", HEX + "hj6kl9"),
    "the azure devops pat is {} please use it": ("secret", HEX + "hj6kl9"),
    "Heroku Api Key    │ {} │ created 2 days ago": ("secret", "25c03045-0611-96bc-5b3d-8021174f3907"),
    "│ DB_PASSWORD │ {} │": ("password", ALNUM),
}
"""Secrets that only their surroundings give away."""

CLEAN = [
    'if "-----BEGIN PRIVATE KEY-----" in text:',
    "token = tokens[0]",
    "self.access_token = response.json()['access_token']",
    'api_key=os.environ["OPENAI_API_KEY"]',
    "apiKey: process.env.API_KEY_2",
    "password: z.string().min(8)",
    "password: string;",
    "password = sha256(salt)",
    '"password": "Password is required"',
    "max_tokens=4096, output_tokens: 1234567890",
    "secret: true",
    "password=${DB_PASSWORD_1}",
    "postgres://user:${PGPASSWORD}@host/db",
    "postgres://user:<password>@host/db",
    "git@github.com:owner/repo.git",
    "http://127.0.0.1:9464/metrics",
    "class='sk-spinner-double-bounce-animation'",
    "task-1234567890abcdefghij",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "TASK0f1e2d3c4b5a69788796a5b4c3d2e1f0 and SKIP this, SKU 12345678901234567890123456789012",
    "SK0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c is longer than a key, SK0f1e2d3c shorter",
    "SKdeadbeefdeadbeefdeadbeefdeadbeef has no digit",
    "sha256 SK_0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "AND NOT MTk4NjIyNDgzNDcxOTI1MjQ4 alone, which is a number in Base64",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.short",
    "NDk.NTIz.MTIz OTHER.METHOD.MDX",
    "TWO_PARTS.MTAwMDAwMDAwMDAwMDAwMDAw.txt",
    "basic authentication-middleware-for-everyone",
    "from huggingface_hub import hf_hub_download_with_progress",
    "The bearer of this message knows the token.",
    "| api_key | required string |\n| password | SHA-256 |",
    "The key: a row of the table, see section 14.",
    "echo $PASSWORD | docker login --password-stdin; echo done | sudo tee -a log",
    "htpasswd -b file bob $PASSWORD; set -e; ENV PATH /usr/local/bin2:/usr/bin",
    "IDENTIFIED BY 'password'; identified by 3 reviewers; with password 'secret'",
    "access=winreg.KEY_READ | winreg.KEY_WOW64_32KEY\nKEY_READ | KEY_WOW64_64KEY_AND_MORE",
    "RegOpenKeyEx = win32api.RegOpenKeyEx\nEnumKey = win32api.RegEnumKey\nEnumValue = win32api.RegEnumValue",
    "longopt_pat = r'[a-zA-Z](?:[a-zA-Z0-9-]*)'\nHEX_PATTERN = re.compile(r'%[^0-9A-Fa-f]|%[0-9A-Fa-f]')",
    'PROCESS_PATH = f"/v1/process_profile/{LEARNED_GROUP}"\nCOMPAT = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"',
    'mlkem_key: mlkem.MLKEM768PrivateKey\n#define TLS1_RFC_PSK_WITH_NULL_SHA256 "TLS_PSK_WITH_NULL_SHA256"',
    "PASS: post-removal draw does not throw\nforgot_password: reset-form2\npassword: scram-hash12",
    "secret_key=hash(Value1, seed2)!=other(A1b2c3)^mask!3",
    "https://example.com/search?q=%22token%22%3A+%22string%22&page=%3D12",
]


def secrets() -> st.SearchStrategy[tuple[str, str]]:
    """A text fragment with a secret in it, and the secret."""
    shaped = st.sampled_from([(secret, secret) for secret in SHAPED.values()])
    assigned = st.sampled_from([(frame.format(secret), secret) for frame, (_, secret) in IN_CONTEXT.items()])
    return shaped | assigned


_GLUE = st.sampled_from(["\n", " ", '"', "'", ", ", " → ", ")", "\\n", "\t", ";", "漢字 "])
_CRUMBS = st.sampled_from(
    [
        *SHAPED.values(),
        *(frame.format(secret) for frame, (_, secret) in IN_CONTEXT.items()),
        "password",
        "=",
        ":",
        '"',
        "://",
        "@",
        "[",
        "]",
        "token",
        "sk-",
        "eyJ",
        ".",
        "-----",
        "a1",
        "Bearer ",
        "\\n",
    ]
)


@pytest.mark.parametrize(("kind", "secret"), SHAPED.items())
def test_a_shaped_secret_is_replaced_by_its_kind(kind: str, secret: str) -> None:
    result = redact(f"before {secret} after")

    assert result.text == f"before [redacted:{kind}] after"
    assert result.counts == {kind: 1}


@pytest.mark.parametrize(
    "number", [80351110224678912, 198622483471925248, 912345678901234567, 1204567890123456789]
)
@pytest.mark.parametrize("signature", [27, 38])
def test_a_discord_token_of_any_age_is_replaced(number: int, signature: int) -> None:
    name = base64.b64encode(str(number).encode()).decode().rstrip("=")
    token = f"{name}.G3x-_9." + (BODY + BODY)[:signature]

    assert redact(f"Authorization header {token}").counts == {"discord_token": 1}


@pytest.mark.parametrize(("frame", "expected"), IN_CONTEXT.items())
def test_a_secret_in_context_is_replaced(frame: str, expected: tuple[str, str]) -> None:
    kind, secret = expected

    assert redact(frame.format(secret)).text == frame.format(f"[redacted:{kind}]")


@pytest.mark.parametrize("text", CLEAN)
def test_ordinary_text_is_unchanged(text: str) -> None:
    result = redact(text)

    assert result.text is text
    assert result.counts == {}


def test_a_known_shape_names_the_kind_of_an_assigned_secret() -> None:
    result = redact(f"export OPENAI_API_KEY={SHAPED['openai_key']}\n")

    assert result.text == "export OPENAI_API_KEY=[redacted:openai_key]\n"
    assert result.counts == {"openai_key": 1}


def test_a_key_cut_off_by_truncated_output_is_replaced() -> None:
    assert redact("cat id_rsa\n" + PEM[:70]).text == "cat id_rsa\n[redacted:private_key]"


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        ("db.example.com:5432:shop:app:winter2024", "db.example.com:5432:shop:app:[redacted:password]"),
        ("db.example.com:5432:shop:app:123456", "db.example.com:5432:shop:app:123456"),
        (
            f".a.com\tTRUE\t/\tTRUE\t17672256\tsid\t{ALNUM}",
            ".a.com\tTRUE\t/\tTRUE\t17672256\tsid\t[redacted:cookie]",
        ),
    ],
)  # fmt: skip
def test_the_last_field_of_a_password_or_cookie_file_is_replaced(line: str, clean: str) -> None:
    assert redact(f"# file\n{line}\n").text == f"# file\n{clean}\n"


@pytest.mark.parametrize("end", ["", "\nPrivate-MAC: 5a6b7c8d9e0f"])
def test_a_key_of_putty_is_replaced_to_its_end(end: str) -> None:
    """With its MAC it ends there; cut off, everything after its head is part of it."""
    head = "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: <ann's key>\nPrivate-Lines: 1\n"
    text = f"{head}AAAAIJ9mQ2Vn5zqXk0Zr7pVn1sT4uYw8aB3cD6eF9gH2{end}"

    assert redact(text).text == "[redacted:private_key]"
    assert redact(f"{text}\nthanks").text == "[redacted:private_key]" + ("\nthanks" if end else "")


def test_a_key_in_escaped_json_is_replaced() -> None:
    text = json.dumps({"stdout": "done\n" + SHAPED["openai_key"] + "\n" + PEM})

    assert redact(text).text == '{"stdout": "done\\n[redacted:openai_key]\\n[redacted:private_key]"}'


@given(parts=st.lists(st.tuples(st.text(max_size=20), _GLUE, secrets(), _GLUE), min_size=1, max_size=4))
def test_no_part_of_a_secret_remains(parts: list[tuple[str, str, tuple[str, str], str]]) -> None:
    """No eight characters of a secret remain, unless the surrounding text contains them too."""
    outside = "".join(f"{text}{before}\0{after}" for text, before, _, after in parts)
    text = "".join(f"{text}{before}{fragment}{after}" for text, before, (fragment, _), after in parts)
    frames = "\0".join(fragment.replace(secret, "\0") for _, _, (fragment, secret), _ in parts)
    redacted = redact(text).text
    for _, _, (_, secret), _ in parts:
        pieces = [secret[at : at + 8] for at in range(max(1, len(secret) - 7))]

        assert [piece for piece in pieces if piece in redacted and piece not in outside + frames] == []


def test_a_secret_that_only_another_secret_ends_is_replaced() -> None:
    result = redact(SHAPED["twilio_key"] + SHAPED["anthropic_key"])

    assert result.text == "[redacted:twilio_key][redacted:anthropic_key]"
    assert result.counts == {"twilio_key": 1, "anthropic_key": 1}


@given(text=st.lists(_CRUMBS | st.text(max_size=6), max_size=14).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)

    assert redact(once.text).text == once.text


@given(text=st.lists(_CRUMBS | st.text(max_size=6), max_size=14).map("".join))
def test_growth_is_bounded(text: str) -> None:
    result = redact(text)

    assert len(result.text) <= len(text) + 32 * sum(result.counts.values())
    assert result.text.count("[redacted:") - text.count("[redacted:") == sum(result.counts.values())


HOSTILE = {
    "prefixes": "sk-",
    "segments": "eyJaaaaaaaaaa.",
    "heads": "eyJ",
    "numbers": "MTk4",
    "twilio": "SK0123456789abcdef0123456789abcdef0",
    "assignments": "token=",
    "passwords": "password:",
    "openings": "-----BEGIN PRIVATE KEY-----",
    "schemes": "://a:",
    "colons": "a:",
    "blanks": "token          ",
    "dots": "SG.",
    "bearers": "bearer ",
    "wide": "İtoken=",
    "symbols": "secret_key=a(!^&",
    "ampersands": "token=abcd&a",
    "drawn lines": "│ token ",
    "hyphens": "PASSWORD=abc-",
    "digits": "2",
}


HOSTILE_CHARACTERS = 4_000_000 if EVERYTHING else 200_000


@pytest.mark.timeout(60)
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """Text made to provoke backtracking takes under a second; quadratic work would take hours."""
    text = unit * (HOSTILE_CHARACTERS // len(unit))
    result = redact(text)

    assert len(result.text) <= len(text) + 32 * sum(result.counts.values())


@pytest.mark.parametrize(
    ("texts", "secret"),
    [
        (("the token is ghp_aB3dE6gH9jK2mN5p", "Q8sT1vW4yZ7bC0fGhJ6kL9 and more"), "Q8sT1vW4yZ7bC0fG"),
        (("PASSWORD=", "Hunter2Hunter2 end"), "Hunter2Hunter2"),
    ],
)
def test_a_secret_over_two_texts_is_replaced(texts: tuple[str, str], secret: str) -> None:
    first, second = join_split_secrets(texts)

    assert secret not in first + second
    assert first.endswith("]")
    assert texts[1].endswith(second)


def test_texts_without_a_secret_between_them_are_unchanged() -> None:
    texts = ["some text", f"token={ALNUM}", "more text"]

    assert join_split_secrets(texts) == texts


@pytest.mark.parametrize("color", ["\x1b[1;31m", "\\u001b[31m", "\\033[0m", "\u200b"])
def test_a_secret_interrupted_by_colors_is_replaced(color: str) -> None:
    token = SHAPED["github_token"]
    text = f"{color}ok{color} token {token[:9]}{color}{token[9:]}{color} end"

    assert redact(text).text == f"{color}ok{color} token [redacted:github_token]{color} end"


def test_a_secret_inside_base64_is_replaced() -> None:
    hidden = base64.b64encode(b"password: Hunter2Hunter2\n").decode()
    harmless = base64.b64encode(b"greeting: hello, world, how are you?\n").decode()

    assert redact(f"echo {hidden} {harmless}").text == f"echo [redacted:base64_secret] {harmless}"


def test_a_secret_inside_percent_encoding_is_replaced() -> None:
    hidden = quote('{"api_token": "9f8e7d6c5b4a39281706f5e4d3c2b1a0"}', safe="")
    harmless = quote('{"greeting": "hello, world"}', safe="")

    assert redact(f"GET /cb?state={hidden}&view={harmless}").text == (
        f"GET /cb?state=[redacted:percent_encoded_secret]&view={harmless}"
    )


def test_a_secret_beside_every_separator_in_percent_encoding_is_replaced() -> None:
    hidden = quote("""{"env": "api_token='9f8e7d6c5b4a39281706f5e4d3c2b1a0'"}""", safe="")

    assert redact(f"GET /cb?state={hidden}").text == "GET /cb?state=[redacted:percent_encoded_secret]"


def test_nesting_beyond_all_passes_replaces_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text in which each replacement uncovers another secret is replaced as a whole, so that none remains."""
    monkeypatch.setattr("windowpane.core.redaction.redactor._MAXIMUM_PASSES", 1)

    assert redact(SHAPED["twilio_key"] + SHAPED["anthropic_key"]).text == "[redacted:nested_secrets]"


def test_recorded_sessions_cause_no_false_alarm(sessions_dir: Path) -> None:
    found: dict[str, int] = {}
    for text in recorded_texts(sessions_dir):
        for kind, count in redact(text).counts.items():
            found[kind] = found.get(kind, 0) + count

    assert found == {}


def test_overlapping_secrets_are_replaced_to_the_end() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj"
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"

    assert redact(f"token=a1b2c3d4e5f6g7h8{key} end").text == "token=[redacted:secret] end"


def test_a_value_of_few_distinct_characters_is_not_a_secret() -> None:
    assert redact("token=aaaaaaaabbbbbbbb1111").text == "token=aaaaaaaabbbbbbbb1111"
    assert redact("token=a8f3k2m9q7w5x1z4").text == "token=[redacted:secret]"


def test_letters_that_grow_in_lower_case_do_not_shift_the_replacement() -> None:
    assert redact("İİİİ PASSWORD=Hunter2Hunter2 end").text == "İİİİ PASSWORD=[redacted:password] end"


def test_a_long_id_is_stored_within_the_bytes_of_an_index() -> None:
    assert len(stored_id("a" * 900).encode()) == LONGEST_NAME_BYTES
    assert stored_id("a" * 900) != stored_id("a" * 901)


def test_gibberish_takes_eleven_letters_that_no_word_has_in_this_order() -> None:
    assert is_gibberish("xqzjkvwxqzj")
    assert not is_gibberish("xqzjkvwxqz")
    assert not is_gibberish("information")
