"""Shapes of tokens that need more than the published rules: in any length, cut off, or only in part a secret.

No pattern requires anything after an unbounded run and runs are possessive, so each character is examined a fixed
number of times.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

from windowpane.core.redaction.published_shapes import PUBLISHED_SHAPES
from windowpane.core.redaction.shape import Shape, Span, at_edge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windowpane.core.redaction.character_classes import Run
    from windowpane.core.redaction.literals import Occurrences

_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_REST = r"[A-Za-z0-9_-]*+"

OWN_SHAPES: Final = (
    # Language models
    Shape("anthropic_key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,}+"),
    Shape("openai_key", ("sk-",), r"sk-(?!ant-)[A-Za-z0-9_-]{20,}+", at_edge=True, needs_digit=True),
    Shape("langfuse_key", ("pk-lf-",), rf"pk-lf-{_UUID}"),
    Shape("huggingface_token", ("hf_",), r"hf_[A-Za-z0-9]{30,}+", at_edge=True),
    Shape("groq_key", ("gsk_",), r"gsk_[A-Za-z0-9]{40,}+", at_edge=True),
    Shape("xai_key", ("xai-",), r"xai-[A-Za-z0-9]{40,}+", at_edge=True),
    Shape("nvidia_key", ("nvapi-",), r"nvapi-[A-Za-z0-9_-]{40,}+", at_edge=True),
    Shape("perplexity_key", ("pplx-",), r"pplx-[A-Za-z0-9]{32,}+", at_edge=True),
    Shape("replicate_token", ("r8_",), r"r8_[A-Za-z0-9]{32,}+", at_edge=True),
    Shape("langsmith_key", ("lsv2_",), r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}+", at_edge=True),
    Shape("tavily_key", ("tvly-",), r"tvly-[A-Za-z0-9-]{24,}+", at_edge=True, needs_digit=True),
    Shape("pinecone_key", ("pcsk_",), r"pcsk_[A-Za-z0-9_]{40,}+", at_edge=True),
    Shape("voyage_key", ("pa-",), r"pa-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", at_edge=True, entropy=3.8),
    Shape("fireworks_key", ("fw_",), r"fw_[A-Za-z0-9]{20,}+", at_edge=True, needs_digit=True),
    Shape("cerebras_key", ("csk-",), r"csk-[A-Za-z0-9]{40,}+", at_edge=True),
    Shape("e2b_key", ("e2b_",), r"e2b_[0-9a-f]{32,}+", at_edge=True),
    Shape("firecrawl_key", ("fc-",), r"fc-[0-9a-f]{32}(?![0-9A-Za-z])", at_edge=True),
    Shape("wandb_key", ("wandb_v1_",), r"wandb_v1_[A-Za-z0-9_-]{40,}+"),
    Shape("bedrock_key", ("bedrock-api-key-",), r"bedrock-api-key-[A-Za-z0-9+/=_-]{20,}+"),
    Shape("elevenlabs_key", ("sk_",), r"sk_[0-9a-f]{48}(?![0-9A-Za-z])", at_edge=True),
    # Code hosting and packages
    Shape("github_token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{36,}+"),
    Shape("github_token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{40,}+"),
    Shape("gitlab_token", ("glpat-", "glrt-"), r"gl(?:pat|rt)-[A-Za-z0-9_.-]{20,}+"),
    Shape("gitlab_session", ("_gitlab_session=",), r"_gitlab_session=(?P<secret>[0-9a-f]{32,}+)"),
    Shape("bitbucket_token", ("ATBB", "ATCTT3"), r"AT(?:BB|CTT3)[A-Za-z0-9_=-]{28,}+", at_edge=True),
    Shape("atlassian_token", ("ATATT3",), r"ATATT3[A-Za-z0-9_=-]{40,}+"),
    Shape("trello_token", ("ATTA",), r"ATTA[0-9a-fA-F]{60,}+", at_edge=True),
    Shape("npm_token", ("npm_",), r"npm_[A-Za-z0-9]{36,}+", at_edge=True),
    Shape("pypi_token", ("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{30,}+"),
    Shape("nuget_key", ("oy2",), r"oy2[a-z0-9]{43}(?![A-Za-z0-9])", at_edge=True),
    Shape("crates_token", ("cio",), r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9_])", at_edge=True, entropy=3.5),
    Shape("docker_token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[A-Za-z0-9_-]{20,}+"),
    Shape("sourcegraph_token", ("sgp_",), r"sgp_(?:(?:[0-9a-fA-F]{16}|local)_)?[0-9a-fA-F]{40,}+", at_edge=True),
    Shape("circleci_token", ("CCIPAT_", "CCIPRJ_"), r"CCIP(?:AT|RJ)_[A-Za-z0-9]{10,}_[0-9a-f]{40}"),
    Shape("buildkite_token", ("bkua_", "bkct_", "bkpt_"), r"bk(?:ua|ct|pt)_[A-Za-z0-9]{36,}+", at_edge=True),
    Shape("sonar_token", ("squ_", "sqp_", "sqa_"), r"sq[upa]_[0-9a-f]{40}", at_edge=True),
    Shape("snyk_token", ("snyk_",), r"snyk_(?:uat|sat|pat)\.[A-Za-z0-9_.-]{20,}+", at_edge=True),
    Shape("vscode_token", ("vsce_", "ovsxp_"), r"(?:vsce|ovsxp)_[A-Za-z0-9-]{30,}+", at_edge=True),
    # Clouds and hosting
    Shape(
        "aws_access_key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        rf"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{{16}}{_REST}",
        at_edge=True,
    ),
    Shape("aws_session_token", ("IQoJ", "FwoG"), r"(?:IQoJ|FwoG)[A-Za-z0-9+/%]{100,}+={0,2}", at_edge=True),
    Shape("google_key", ("AIza",), r"AIza[A-Za-z0-9_-]{35,}+"),
    Shape("google_token", ("ya29.",), r"ya29\.[A-Za-z0-9_.-]{20,}+", at_edge=True),
    Shape("google_token", ("1//0",), r"1//0[A-Za-z0-9_-]{40,}+", at_edge=True),
    Shape("google_secret", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}+"),
    Shape("firebase_key", (":APA91b",), r":(?P<secret>APA91b[A-Za-z0-9_-]{60,}+)"),
    Shape("azure_devops_token", ("AZDO",), rf"[A-Za-z0-9]{{76}}AZDO[A-Za-z0-9]{{4}}{_REST}", offset=76),
    Shape("tencent_key", ("AKID",), r"AKID[A-Za-z0-9]{32,}+", at_edge=True),
    Shape(
        "digitalocean_token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        rf"do[opr]_v1_[0-9a-f]{{64}}{_REST}",
        at_edge=True,
    ),
    Shape("fly_token", ("FlyV1",), r"FlyV1 [A-Za-z0-9_+/=,-]{40,}+", at_edge=True),
    Shape("render_key", ("rnd_",), r"rnd_[A-Za-z0-9]{28,}+", at_edge=True, needs_digit=True),
    Shape("netlify_token", ("nfp_", "nfc_", "nfo_"), r"nf[pco]_[A-Za-z0-9]{36,}+", at_edge=True),
    Shape("vercel_token", ("vcp_", "vck_", "vca_", "vci_"), r"vc[pkai]_[A-Za-z0-9]{24,}+", at_edge=True),
    Shape("cloudflare_token", ("cfat_", "cfut_", "cfk_"), r"cf(?:at|ut|k)_[A-Za-z0-9_-]{30,}+", at_edge=True),
    Shape("supabase_key", ("sbp_",), rf"sbp_(?:v0_)?[0-9a-f]{{40}}{_REST}", at_edge=True),
    Shape("supabase_key", ("sb_secret_",), r"sb_secret_[A-Za-z0-9_-]{20,}+", at_edge=True),
    Shape("neon_key", ("napi_",), r"napi_[a-z0-9]{40,}+", at_edge=True),
    Shape("mongodb_secret", ("mdb_sa_sk_",), r"mdb_sa_sk_[A-Za-z0-9_-]{30,}+", at_edge=True),
    Shape("databricks_token", ("dapi", "dose", "dkea"), rf"d(?:api|ose|kea)[0-9a-f]{{32}}{_REST}", at_edge=True),
    Shape("dbt_token", ("dbtc_", "dbtu_"), r"dbt[cu]_[A-Za-z0-9_-]{30,}+", at_edge=True),
    Shape("doppler_token", ("dp.",), r"dp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9_.-]{40,}+", at_edge=True),
    Shape("infisical_token", ("st.",), rf"st\.{_UUID}\.[0-9a-f]{{32}}\.[0-9a-f]{{32}}", at_edge=True),
    Shape("bitwarden_token", ("0.",), rf"0\.{_UUID}\.[A-Za-z0-9]{{30}}:[A-Za-z0-9+/=]{{20,}}+", at_edge=True),
    Shape("tailscale_key", ("tskey-",), r"tskey-[a-z]{3,12}-[A-Za-z0-9-]{16,}+"),
    Shape("vault_token", ("hvs.", "hvb.", "hvr."), r"hv[bsr]\.[A-Za-z0-9_-]{24,}+", at_edge=True),
    Shape("scaleway_key", ("SCW",), r"SCW[A-Z0-9]{17}(?![A-Za-z0-9])", at_edge=True, needs_digit=True),
    # Observability
    Shape("grafana_token", ("glsa_",), r"glsa_[A-Za-z0-9_]{32,}+", at_edge=True),
    Shape("grafana_key", ("eyJrIjoi",), r"eyJrIjoi[A-Za-z0-9+/]{40,}+={0,2}", at_edge=True),
    Shape("honeycomb_key", ("hcaik_", "hcalk_", "hcbik_"), r"hc[ab][il]k_[A-Za-z0-9]{26,}+", at_edge=True),
    Shape("posthog_key", ("phx_", "phs_"), r"ph[xs]_[A-Za-z0-9]{30,}+", at_edge=True),
    Shape("launchdarkly_key", ("sdk-", "api-"), rf"(?:sdk|api)-{_UUID}", at_edge=True),
    Shape("sentry_token", ("sntrys_", "sntryu_", "sntryi_"), r"sntry[sui]_[A-Za-z0-9+/=_-]{40,}+", at_edge=True),
    # Messages and mail
    Shape("slack_token", ("xox", "xapp-"), r"x(?:ox[abceoprs]|app)(?:[.-]xox[bp])?-[A-Za-z0-9-]{10,}+"),
    Shape(
        "slack_webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9]{6,}+/[A-Za-z0-9/]{16,}+)",
    ),
    Shape(
        "discord_webhook",
        ("/api/webhooks/",),
        r"/api/webhooks/\d{15,21}/(?P<secret>[A-Za-z0-9_-]{40,}+)",
    ),
    Shape(
        "teams_webhook",
        (".webhook.office.com/", "outlook.office.com/webhook"),
        r"(?:\.webhook|outlook)\.office\.com/webhook(?:b2)?/(?P<secret>[A-Za-z0-9@/-]{36,}+)",
    ),
    Shape("telegram_token", (":AA",), r":AA[A-Za-z0-9_-]{33,}+", needs_digit=True),
    Shape("sendgrid_key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+", at_edge=True),
    Shape("twilio_key", ("SK",), r"SK[0-9a-f]{32}(?![A-Za-z0-9])", at_edge=True, needs_digit=True),
    Shape("brevo_key", ("xsmtpsib-",), r"xsmtpsib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    Shape("mailchimp_key", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])", offset=32, at_edge=True),
    Shape("resend_key", ("re_",), r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+", at_edge=True, needs_digit=True),
    Shape(
        "google_chat_webhook", ("chat.googleapis.com/",), r"chat\.googleapis\.com/v1/spaces/[^\s\"'<>]{1,200}+"
    ),
    # Work and design
    Shape("airtable_token", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", at_edge=True),
    Shape(
        "notion_token", ("secret_", "ntn_"), r"(?:secret|ntn)_[A-Za-z0-9]{40,}+", at_edge=True, needs_digit=True
    ),
    Shape("figma_token", ("figd_", "figu_", "figoh_"), r"fig(?:d|u|oh)_[A-Za-z0-9_-]{36,}+", at_edge=True),
    Shape("postman_key", ("PMAT-",), r"PMAT-[A-Z0-9]{26}", at_edge=True),
    Shape("asana_token", ("1/", "2/"), r"[12]/\d{13,}(?:/\d{13,})?:[0-9a-f]{32}", at_edge=True),
    Shape("linear_key", ("lin_api_", "lin_oauth_"), r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}+", at_edge=True),
    Shape("contentful_token", ("CFPAT-",), r"CFPAT-[A-Za-z0-9_-]{40,}+"),
    Shape("hubspot_token", ("pat-",), rf"pat-(?:na|eu|ap)\d-{_UUID}", at_edge=True),
    Shape(
        "salesforce_token", ("00D",), r"00D[A-Za-z0-9]{12}(?:[A-Za-z0-9]{3})?![A-Za-z0-9_.]{60,}+", at_edge=True
    ),
    Shape("zapier_webhook", ("hooks.zapier.com/hooks/",), r"hooks\.zapier\.com/hooks/catch/(?P<secret>\d+/\w+)"),
    Shape(
        "mapbox_token", ("sk.eyJ", "pk.eyJ"), r"[sp]k\.eyJ[A-Za-z0-9_-]{20,}+\.[A-Za-z0-9_-]{16,}+", at_edge=True
    ),
    Shape(
        "yandex_token",
        ("t1.", "y0_"),
        r"(?:t1\.[A-Za-z0-9_-]{30,}+={0,2}\.|y0_)[A-Za-z0-9_-]{50,}+={0,2}",
        at_edge=True,
    ),
    # Payment and shops
    Shape(
        "stripe_key",
        ("sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"),
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}+",
    ),
    Shape("stripe_key", ("whsec_",), r"whsec_[A-Za-z0-9+/=]{24,}+"),
    Shape("square_token", ("sq0csp-", "sq0idp-"), r"sq0(?:cs|id)p-[A-Za-z0-9_-]{22,}+"),
    Shape("razorpay_key", ("rzp_live_", "rzp_test_"), r"rzp_(?:live|test)_[A-Za-z0-9]{14,}+"),
    Shape(
        "paypal_token", ("access_token$",), r"access_token\$(?:production|sandbox)\$[a-z0-9]{13,}\$[0-9a-f]{32}"
    ),
    Shape("adyen_key", ("AQE",), r"AQE[a-z0-9][A-Za-z0-9+/=%._-]{60,}+", at_edge=True),
    Shape(
        "shopify_token",
        ("shpat_", "shpss_", "shpca_", "shppa_"),
        rf"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{{32}}{_REST}",
        at_edge=True,
    ),
    Shape("meta_token", ("EAA", "IGQ"), r"(?:EAA|IGQ)[A-Za-z0-9]{90,}+", at_edge=True),
    Shape("twitter_token", ("AAAAAAAAAAAAAAAAAAAAA",), r"A{21,22}[A-Za-z0-9%]{60,}+", at_edge=True),
    # Keys and tokens of open standards
    Shape("jwt", ("eyJ",), r"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?", at_edge=True),
    Shape("jwt", ("eyJ",), r"eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){4}", at_edge=True),
    Shape("age_key", ("AGE-SECRET-KEY-1",), rf"AGE-SECRET-KEY-1[A-Z0-9]{{50}}{_REST}"),
    Shape("wallet_key", ("xprv", "zprv", "yprv"), r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{80,}+", at_edge=True),
    Shape("password_hash", ("$2a$", "$2b$", "$2y$"), r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}"),
    Shape("password_hash", ("$argon2",), r"\$argon2(?:id|i|d)\$[^\s\"',:]{20,300}+"),
    Shape(
        "password_hash",
        ("$1$", "$5$", "$6$", "$y$", "$apr1$"),
        r"\$(?:1|5|6|y|apr1)\$(?:[./A-Za-z0-9=]{1,40}\$){1,2}[./A-Za-z0-9]{22,}+",
    ),
)

SHAPES: Final = (*OWN_SHAPES, *PUBLISHED_SHAPES)

_DIGIT: Final = re.compile(r"[0-9]")
_LETTERS: Final = re.compile(r"[A-Z]{16}|[A-Za-z0-9_-]{30}")
"""A run in a word without a digit is a token only from this length."""
_WORD_CHARACTERS: Final = 64
"""Of a word, so many characters on each side of a token are read."""
_BLANK: Final = re.compile(r"\s")
_DATA_CHARACTERS: Final = 256
_DATA_START_CHARACTERS: Final = 100
_BASE64: Final = f"{string.ascii_letters}{string.digits}+/"
_DISCORD_TAIL = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+")
_DISCORD_HEAD = re.compile(r"(?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){5,6}(?:[MNO][A-Za-z0-9]{1,2})?")
"""A user's number of 17 to 19 digits in Base64; it has no fixed start, so the tail of a token is found first."""
_DISCORD_HEAD_CHARACTERS = (26, 24, 23)
"""Lengths of 19, 18 and 17 digits in Base64."""


def _by_literal() -> dict[str, tuple[tuple[str, Shape], ...]]:
    """Return each literal and its shape by the literal in lower case."""
    groups: dict[str, tuple[tuple[str, Shape], ...]] = {}
    for shape in SHAPES:
        for literal in shape.literals:
            groups[literal.lower()] = (*groups.get(literal.lower(), ()), (literal, shape))
    return groups


_BY_LITERAL: Final = _by_literal()
LITERALS: Final = tuple(_BY_LITERAL)


def shaped_spans(text: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the secrets that their shape gives away in *text* by the *occurrences* of literals in it."""
    for folded, positions in occurrences.items():
        for literal, shape in _BY_LITERAL.get(folded, ()):
            for span in shape.spans(literal, positions, text):
                if _is_in_token(text, span) and not _is_in_data(text, span):
                    yield span


def discord_spans(text: str, runs: Iterable[Run]) -> Iterator[Span]:
    """Yield the tokens of Discord, whose first parts are among *runs*."""
    for _, end in runs:
        tail = _DISCORD_TAIL.match(text, end)
        if tail is None:
            continue
        for characters in _DISCORD_HEAD_CHARACTERS:
            start = end - characters
            if start >= 0 and at_edge(text, start) and _DISCORD_HEAD.fullmatch(text, start, end):
                yield Span(start, 0, tail.end(), "discord_token")
                break


def _is_in_token(text: str, span: Span) -> bool:
    """Return True if the word around *span* has a digit, or more letters than a word of a language."""
    before = _BLANK.split(text[max(0, span.start - _WORD_CHARACTERS) : span.start])[-1]
    after = _BLANK.split(text[span.end : span.end + _WORD_CHARACTERS], maxsplit=1)[0]
    word = f"{before}{text[span.start : span.end]}{after}"
    return _DIGIT.search(word) is not None or _LETTERS.search(word) is not None


def _is_in_data(text: str, span: Span) -> bool:
    """Return True for what is inside of data in Base64, where literals are by chance."""
    before = text[max(0, span.start - _DATA_CHARACTERS) : span.start]
    start = len(before) - len(before.rstrip(_BASE64))
    if start < _DATA_START_CHARACTERS:
        return False
    after = text[span.start : span.start + _DATA_CHARACTERS]
    return start + len(after) - len(after.lstrip(_BASE64)) >= _DATA_CHARACTERS
