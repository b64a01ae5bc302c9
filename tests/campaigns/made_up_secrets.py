"""Made-up secrets in the formats that providers document, written as people and programs write them.

Nothing here knows the rules of the redaction: a kind is a format from a provider's documentation with the name of
the variable its documentation uses, a context is a syntax. `cases` combines them with a random generator.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "_-"
B64 = ALNUM + "+/"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
UPPER = string.ascii_uppercase + string.digits

Make = Callable[[random.Random], str]


def chars(alphabet: str, size: int) -> Make:
    """A value of *size* random characters that has at least one digit where the alphabet has any."""
    return lambda rng: "".join(rng.choice(alphabet) for _ in range(size))


def form(template: str) -> Make:
    """A value by template: `{h8}` is eight hexadecimal digits, `a` letters and digits, `u` also `_-`."""
    alphabets = {
        "h": HEX,
        "l": LOWER,
        "a": ALNUM,
        "u": URL,
        "b": B64,
        "d": string.digits,
        "U": UPPER,
        "x": BASE58,
    }
    alphabets["z"] = string.ascii_lowercase + "234567"
    alphabets["L"] = string.ascii_letters

    def make(rng: random.Random) -> str:
        parts = []
        for piece in template.split("{"):
            head, brace, tail = piece.partition("}")
            if not brace:
                parts.append(piece)
                continue
            parts.append("".join(rng.choice(alphabets[head[0]]) for _ in range(int(head[1:]))) + tail)
        return "".join(parts)

    return make


UUID = "{h8}-{h4}-4{h3}-a{h3}-{h12}"

# Kind: name of the variable in the provider's documentation, and the documented format.
TOKENS: dict[str, tuple[str, str]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "sk-ant-api03-{u93}AA"),
    "anthropic admin": ("ANTHROPIC_ADMIN_KEY", "sk-ant-admin01-{u93}AA"),
    "anthropic oauth": ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-{u86}"),
    "openai": ("OPENAI_API_KEY", "sk-{a20}T3BlbkFJ{a20}"),
    "openai project": ("OPENAI_API_KEY", "sk-proj-{u74}T3BlbkFJ{u74}"),
    "openai service account": ("OPENAI_API_KEY", "sk-svcacct-{u74}T3BlbkFJ{u74}"),
    "openrouter": ("OPENROUTER_API_KEY", "sk-or-v1-{h64}"),
    "deepseek": ("DEEPSEEK_API_KEY", "sk-{h32}"),
    "mistral": ("MISTRAL_API_KEY", "{a32}"),
    "cohere": ("COHERE_API_KEY", "{a40}"),
    "together": ("TOGETHER_API_KEY", "{h64}"),
    "fireworks": ("FIREWORKS_API_KEY", "fw_{a24}"),
    "groq": ("GROQ_API_KEY", "gsk_{a52}"),
    "xai": ("XAI_API_KEY", "xai-{a80}"),
    "perplexity": ("PERPLEXITY_API_KEY", "pplx-{a48}"),
    "replicate": ("REPLICATE_API_TOKEN", "r8_{a37}"),
    "hugging face": ("HF_TOKEN", "hf_{L34}"),
    "nvidia": ("NVIDIA_API_KEY", "nvapi-{u64}"),
    "cerebras": ("CEREBRAS_API_KEY", "csk-{l48}"),
    "voyage": ("VOYAGE_API_KEY", "pa-{u43}"),
    "pinecone": ("PINECONE_API_KEY", "pcsk_{a5}_{a63}"),
    "weights and biases": ("WANDB_API_KEY", "{h40}"),
    "langsmith": ("LANGSMITH_API_KEY", "lsv2_pt_{h32}_{h10}"),
    "langfuse": ("LANGFUSE_SECRET_KEY", "sk-lf-" + UUID),
    "tavily": ("TAVILY_API_KEY", "tvly-dev-{a32}"),
    "elevenlabs": ("ELEVENLABS_API_KEY", "sk_{h48}"),
    "assemblyai": ("ASSEMBLYAI_API_KEY", "{h32}"),
    "deepgram": ("DEEPGRAM_API_KEY", "{h40}"),
    "firecrawl": ("FIRECRAWL_API_KEY", "fc-{h32}"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "ABSK{b128}="),
    "bedrock short": ("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t{b80}"),
    "azure openai": ("AZURE_OPENAI_API_KEY", "{h32}"),
    "github classic": ("GITHUB_TOKEN", "ghp_{a36}"),
    "github fine-grained": ("GH_TOKEN", "github_pat_{a22}_{a59}"),
    "github app": ("GITHUB_TOKEN", "ghs_{a36}"),
    "github oauth": ("GITHUB_TOKEN", "gho_{a36}"),
    "gitlab": ("GITLAB_TOKEN", "glpat-{u20}"),
    "gitlab runner": ("CI_RUNNER_TOKEN", "glrt-{u20}"),
    "gitlab runner registration": ("REGISTRATION_TOKEN", "GR1348941{u20}"),
    "gitlab deploy": ("CI_DEPLOY_PASSWORD", "gldt-{u20}"),
    "gitlab trigger": ("TRIGGER_TOKEN", "glptt-{h40}"),
    "bitbucket": ("BITBUCKET_APP_PASSWORD", "ATBB{a32}"),
    "atlassian": ("JIRA_API_TOKEN", "ATATT3xFfGF0{u175}=ABCD1234"),
    "npm": ("NPM_TOKEN", "npm_{a36}"),
    "pypi": ("PYPI_TOKEN", "pypi-AgEIcHlwaS5vcmc{u150}"),
    "rubygems": ("GEM_HOST_API_KEY", "rubygems_{h48}"),
    "crates": ("CARGO_REGISTRY_TOKEN", "cio{a32}"),
    "nuget": ("NUGET_API_KEY", "oy2{l43}"),
    "docker": ("DOCKER_PAT", "dckr_pat_{u27}"),
    "artifactory": ("ARTIFACTORY_API_KEY", "AKCp{a69}"),
    "sonarqube": ("SONAR_TOKEN", "squ_{h40}"),
    "codecov": ("CODECOV_TOKEN", UUID),
    "snyk": ("SNYK_TOKEN", UUID),
    "circleci": ("CIRCLE_TOKEN", "CCIPAT_{a22}_{h40}"),
    "buildkite": ("BUILDKITE_API_TOKEN", "bkua_{l40}"),
    "sourcegraph": ("SRC_ACCESS_TOKEN", "sgp_{h16}_{h40}"),
    "aws access key": ("AWS_ACCESS_KEY_ID", "AKIA{z0}{U16}"),
    "aws secret key": ("AWS_SECRET_ACCESS_KEY", "{b40}"),
    "aws session": ("AWS_SESSION_TOKEN", "IQoJb3JpZ2luX2Vj{b300}=="),
    "google api": ("GOOGLE_API_KEY", "AIzaSy{u33}"),
    "google oauth": ("GOOGLE_OAUTH_TOKEN", "ya29.a0{u120}"),
    "google refresh": ("GOOGLE_REFRESH_TOKEN", "1//0{u90}"),
    "google client secret": ("GOOGLE_CLIENT_SECRET", "GOCSPX-{u28}"),
    "azure storage": ("AZURE_STORAGE_KEY", "{b86}=="),
    "azure client secret": ("AZURE_CLIENT_SECRET", "{a3}8Q~{u34}"),
    "azure devops": ("AZURE_DEVOPS_EXT_PAT", "{z52}"),
    "azure devops new": ("AZURE_DEVOPS_EXT_PAT", "{a76}AZDO{a4}"),
    "azure sas": ("AZURE_SAS_TOKEN", "sv=2023-01-03&ss=b&se=2027-01-01T00%3A00%3A00Z&sig={a40}%3D"),
    "digitalocean": ("DIGITALOCEAN_ACCESS_TOKEN", "dop_v1_{h64}"),
    "linode": ("LINODE_TOKEN", "{h64}"),
    "hetzner": ("HCLOUD_TOKEN", "{a64}"),
    "vultr": ("VULTR_API_KEY", "{U36}"),
    "scaleway": ("SCW_SECRET_KEY", UUID),
    "alibaba": ("ALICLOUD_ACCESS_KEY", "LTAI{a20}"),
    "tencent": ("TENCENTCLOUD_SECRET_ID", "AKID{a32}"),
    "ibm": ("IBMCLOUD_API_KEY", "{u44}"),
    "fly": ("FLY_API_TOKEN", "fo1_{u43}"),
    "fly macaroon": ("FLY_API_TOKEN", "fm2_{b160}"),
    "render": ("RENDER_API_KEY", "rnd_{a32}"),
    "netlify": ("NETLIFY_AUTH_TOKEN", "nfp_{a36}"),
    "vercel": ("VERCEL_TOKEN", "{a24}"),
    "heroku": ("HEROKU_API_KEY", "HRKU-AA{u58}"),
    "heroku old": ("HEROKU_API_KEY", UUID),
    "railway": ("RAILWAY_TOKEN", UUID),
    "cloudflare": ("CLOUDFLARE_API_TOKEN", "{u40}"),
    "cloudflare global": ("CLOUDFLARE_API_KEY", "{h37}"),
    "cloudflare origin": ("CLOUDFLARE_ORIGIN_CA_KEY", "v1.0-{h24}-{h146}"),
    "fastly": ("FASTLY_API_TOKEN", "{u32}"),
    "supabase": ("SUPABASE_ACCESS_TOKEN", "sbp_{h40}"),
    "supabase secret": ("SUPABASE_SECRET_KEY", "sb_secret_{u31}"),
    "planetscale": ("PLANETSCALE_SERVICE_TOKEN", "pscale_tkn_{u43}"),
    "neon": ("NEON_API_KEY", "napi_{l64}"),
    "upstash": ("UPSTASH_REDIS_REST_TOKEN", "AX{b50}=="),
    "databricks": ("DATABRICKS_TOKEN", "dapi{h32}"),
    "dbt": ("DBT_CLOUD_API_TOKEN", "dbtc_{u40}"),
    "prefect": ("PREFECT_API_KEY", "pnu_{a36}"),
    "terraform cloud": ("TFE_TOKEN", "{a14}.atlasv1.{u67}"),
    "pulumi": ("PULUMI_ACCESS_TOKEN", "pul-{h40}"),
    "doppler": ("DOPPLER_TOKEN", "dp.st.prd.{a43}"),
    "vault": ("VAULT_TOKEN", "hvs.{u95}"),
    "1password": ("OP_SERVICE_ACCOUNT_TOKEN", "ops_eyJ{b260}"),
    "bitwarden": ("BWS_ACCESS_TOKEN", "0." + UUID + ".{a30}:{b22}=="),
    "tailscale": ("TS_AUTHKEY", "tskey-auth-{a11}CNTRL-{a32}"),
    "ngrok": ("NGROK_AUTHTOKEN", "2{a26}_{a21}"),
    "wireguard": ("PrivateKey", "{b43}="),
    "age": ("AGE_KEY", "AGE-SECRET-KEY-1{U58}"),
    "datadog": ("DD_API_KEY", "{h32}"),
    "datadog app": ("DD_APP_KEY", "{h40}"),
    "new relic": ("NEW_RELIC_API_KEY", "NRAK-{U27}"),
    "new relic license": ("NEW_RELIC_LICENSE_KEY", "{h36}NRAL"),
    "grafana": ("GRAFANA_TOKEN", "glsa_{a32}_{h8}"),
    "grafana cloud": ("GRAFANA_CLOUD_TOKEN", "glc_eyJ{b120}="),
    "sentry dsn": ("SENTRY_DSN", "https://{h32}@o{d6}.ingest.sentry.io/{d7}"),
    "sentry user": ("SENTRY_AUTH_TOKEN", "sntryu_{h64}"),
    "honeycomb": ("HONEYCOMB_API_KEY", "hcaik_01{l58}"),
    "pagerduty": ("PAGERDUTY_TOKEN", "u+{u18}"),
    "opsgenie": ("OPSGENIE_API_KEY", UUID),
    "splunk": ("SPLUNK_HEC_TOKEN", UUID),
    "logdna": ("LOGDNA_INGESTION_KEY", "{h32}"),
    "posthog": ("POSTHOG_PERSONAL_API_KEY", "phx_{a43}"),
    "launchdarkly": ("LAUNCHDARKLY_SDK_KEY", "sdk-" + UUID),
    "segment": ("SEGMENT_WRITE_KEY", "{a32}"),
    "mixpanel": ("MIXPANEL_TOKEN", "{h32}"),
    "slack bot": ("SLACK_BOT_TOKEN", "xoxb-{d12}-{d13}-{a24}"),
    "slack user": ("SLACK_USER_TOKEN", "xoxp-{d12}-{d12}-{d13}-{h32}"),
    "slack app": ("SLACK_APP_TOKEN", "xapp-1-A{U10}-{d13}-{h64}"),
    "slack webhook": ("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T{U10}/B{U10}/{a24}"),
    "discord webhook": ("DISCORD_WEBHOOK_URL", "https://discord.com/api/webhooks/{d18}/{u68}"),
    "teams webhook": (
        "TEAMS_WEBHOOK_URL",
        "https://acme.webhook.office.com/webhookb2/" + UUID + "@" + UUID + "/IncomingWebhook/{h32}/" + UUID,
    ),
    "telegram": ("TELEGRAM_BOT_TOKEN", "{d10}:AA{u33}"),
    "twilio auth": ("TWILIO_AUTH_TOKEN", "{h32}"),
    "twilio key": ("TWILIO_API_KEY_SID", "SK{h32}"),
    "sendgrid": ("SENDGRID_API_KEY", "SG.{u22}.{u43}"),
    "mailgun": ("MAILGUN_API_KEY", "key-{h32}"),
    "mailchimp": ("MAILCHIMP_API_KEY", "{h32}-us14"),
    "postmark": ("POSTMARK_SERVER_TOKEN", UUID),
    "brevo": ("BREVO_API_KEY", "xkeysib-{h64}-{a16}"),
    "resend": ("RESEND_API_KEY", "re_{a8}_{a24}"),
    "vonage": ("VONAGE_API_SECRET", "{a16}"),
    "stripe": ("STRIPE_SECRET_KEY", "sk_live_{a99}"),
    "stripe restricted": ("STRIPE_KEY", "rk_test_{a24}"),
    "stripe webhook": ("STRIPE_WEBHOOK_SECRET", "whsec_{a32}"),
    "square": ("SQUARE_ACCESS_TOKEN", "EAAA{u60}"),
    "paypal": ("PAYPAL_CLIENT_SECRET", "E{u79}"),
    "braintree": ("BRAINTREE_PRIVATE_KEY", "{h32}"),
    "plaid": ("PLAID_SECRET", "{h30}"),
    "razorpay": ("RAZORPAY_KEY_SECRET", "{a24}"),
    "shopify": ("SHOPIFY_ACCESS_TOKEN", "shpat_{h32}"),
    "coinbase": ("COINBASE_API_SECRET", "{b86}=="),
    "binance": ("BINANCE_SECRET_KEY", "{a64}"),
    "ethereum": ("ETH_PRIVATE_KEY", "0x{h64}"),
    "notion": ("NOTION_TOKEN", "secret_{a43}"),
    "notion new": ("NOTION_API_KEY", "ntn_{d11}{a35}"),
    "airtable": ("AIRTABLE_API_KEY", "pat{a14}.{h64}"),
    "figma": ("FIGMA_TOKEN", "figd_{u40}"),
    "postman": ("POSTMAN_API_KEY", "PMAK-{h24}-{h34}"),
    "linear": ("LINEAR_API_KEY", "lin_api_{a40}"),
    "asana": ("ASANA_ACCESS_TOKEN", "1/{d16}:{h32}"),
    "trello": ("TRELLO_TOKEN", "ATTA{h64}"),
    "contentful": ("CONTENTFUL_MANAGEMENT_TOKEN", "CFPAT-{u43}"),
    "algolia": ("ALGOLIA_ADMIN_KEY", "{h32}"),
    "mapbox": ("MAPBOX_ACCESS_TOKEN", "sk.eyJ1{a80}.{u22}"),
    "dropbox": ("DROPBOX_ACCESS_TOKEN", "sl.{u135}"),
    "hubspot": ("HUBSPOT_ACCESS_TOKEN", "pat-na1-" + UUID),
    "salesforce": ("SALESFORCE_ACCESS_TOKEN", "00D{a12}!{a90}"),
    "zendesk": ("ZENDESK_API_TOKEN", "{a40}"),
    "facebook": ("FACEBOOK_ACCESS_TOKEN", "EAAC{a160}"),
    "twitter": ("TWITTER_BEARER_TOKEN", "AAAAAAAAAAAAAAAAAAAAA{a90}"),
    "spotify": ("SPOTIFY_CLIENT_SECRET", "{h32}"),
    "okta": ("OKTA_API_TOKEN", "00{u40}"),
    "auth0": ("AUTH0_CLIENT_SECRET", "{u64}"),
    "discord": ("DISCORD_TOKEN", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{u38}"),
    "django": ("SECRET_KEY", "django-insecure-{a40}"),
    "rails": ("SECRET_KEY_BASE", "{h128}"),
    "laravel": ("APP_KEY", "base64:{b43}="),
    "jwt secret": ("JWT_SECRET", "{b44}"),
    "jwt": ("ACCESS_TOKEN", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIx{u60}.{u43}"),
    "oauth refresh": ("REFRESH_TOKEN", "{u64}"),
    "webhook secret": ("WEBHOOK_SECRET", "{h40}"),
    "encryption key": ("ENCRYPTION_KEY", "{h64}"),
}

PASSWORDS: tuple[tuple[str, str], ...] = (
    ("DB_PASSWORD", "{a10}!{d2}"), ("POSTGRES_PASSWORD", "{a14}"), ("MYSQL_ROOT_PASSWORD", "{L6}@{d4}"),
    ("REDIS_PASSWORD", "{a24}"), ("SMTP_PASS", "{z16}"), ("ADMIN_PASSWORD", "Summer{d4}!"),
    ("LDAP_BIND_PASSWORD", "{a8}#{a4}"), ("KEYSTORE_PASSPHRASE", "{a20}"), ("RABBITMQ_DEFAULT_PASS", "{a18}"),
)  # fmt: skip

ESC = "\x1b"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


Frame = Callable[[str, str], str]
"""The name and the secret to a text."""

ASSIGNMENTS: dict[str, Frame] = {
    "env file": lambda name, secret: f"DEBUG=1\n{name}={secret}\nPORT=8080\n",
    "shell export": lambda name, secret: f'$ export {name}="{secret}"\n$ make deploy',
    "inline variable": lambda name, secret: f"{name}={secret} ./run.sh --verbose",
    "powershell": lambda name, secret: f'PS> $env:{name} = "{secret}"',
    "dockerfile": lambda name, secret: f"FROM alpine\nENV {name} {secret}\nRUN make",
    "docker run": lambda name, secret: f"docker run -d -e {name}={secret} -p 80:80 acme/app:1.2",
    "yaml": lambda name, secret: f"app:\n  port: 80\n  {name.lower()}: {secret}\n  debug: false\n",
    "yaml quoted": lambda name, secret: f"env:\n  {name}: '{secret}'\n",
    "yaml name and value": lambda name, secret: f"env:\n  - name: {name}\n    value: {secret}\n  - name: PORT\n    value: '80'",
    "yaml name and quoted value": lambda name, secret: f'- name: {name}\n  value: "{secret}"\n',
    "json": lambda name, secret: json.dumps({"host": "db1", name.lower(): secret, "port": 5432}),
    "json camel case": lambda name, secret: json.dumps({camel(name): secret}, indent=2),
    "json in json": lambda name, secret: json.dumps({"stdout": json.dumps({name: secret}), "code": 0}),
    "json name and value": lambda name, secret: json.dumps([{"name": name, "value": secret}]),
    "task definition": lambda name, secret: json.dumps({"environment": [{"name": name, "value": secret}]}, indent=2),
    "toml": lambda name, secret: f'[service]\n{name.lower()} = "{secret}"\n',
    "ini": lambda name, secret: f"[default]\n{name.lower()} = {secret}\nregion = eu-west-1\n",
    "properties": lambda name, secret: f"server.port=80\n{name.lower().replace('_', '.')}={secret}\n",
    "flag": lambda name, secret: f"acme-cli deploy --{kebab(name)} {secret} --region eu",
    "flag with equals sign": lambda name, secret: f"acme-cli deploy --{kebab(name)}={secret} --region eu",
    "python": lambda name, secret: f'client = Client(\n    {name.lower()}="{secret}",\n    timeout=3,\n)',
    "python dictionary": lambda name, secret: f"config['{name}'] = '{secret}'",
    "javascript": lambda name, secret: f"const {camel(name)} = '{secret}';",
    "typescript": lambda name, secret: f"const {camel(name)}: string = `{secret}`;",
    "go": lambda name, secret: f'{camel(name)} := "{secret}"',
    "java": lambda name, secret: f'private static final String {name} = "{secret}";',
    "setter": lambda name, secret: f'os.Setenv("{name}", "{secret}")',
    "xml element": lambda name, secret: f"<config><{camel(name)}>{secret}</{camel(name)}></config>",
    "xml attribute": lambda name, secret: f'<add key="{name}" value="{secret}" />',
    "terraform": lambda name, secret: f'variable "{name.lower()}" {{\n  type    = string\n  default = "{secret}"\n}}',
    "kubectl literal": lambda name, secret: f"kubectl create secret generic app --from-literal={name}={secret}",
    "helm set": lambda name, secret: f"helm install app ./chart --set auth.{camel(name)}={secret}",
    "github secret": lambda name, secret: f"gh secret set {name} --body '{secret}'",
    "log line": lambda name, secret: f"2026-03-01T10:00:00Z DEBUG loaded config {name.lower()}={secret} port=80",
    "diff": lambda name, secret: f"@@ -1,2 +1,2 @@\n-{name}=\n+{name}={secret}\n context",
    "printenv": lambda name, secret: f"HOME=/root\n{name}={secret}\nPATH=/usr/bin:/bin",
    "markdown": lambda name, secret: f"Set it like this:\n\n```\n{name}={secret}\n```\n",
    "colored output": lambda name, secret: f"{ESC}[32m{name}{ESC}[0m={ESC}[33m{secret}{ESC}[0m\n",
    "color inside": lambda name, secret: f"{name}={secret[:9]}{ESC}[1;31m{secret[9:]}{ESC}[0m ok",
    "base64": lambda name, secret: f"echo {_base64(f'{name}={secret}')} | base64 -d",
    "numbered lines": lambda name, secret: f"     1\tDEBUG=1\n     2\t{name}={secret}\n     3\tPORT=80",
    "kubernetes secret": lambda name, secret: (
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n  {name.lower()}: {_base64(secret)}\n"
    ),
    "table": lambda name, secret: f"| {name} | `{secret}` |",
    "percent-encoded": lambda name, secret: f"GET /cb?state={quote(json.dumps({name: secret}), safe='')}&page=2",
    "rust": lambda name, secret: f'const {name}: &str = "{secret}";',
    "yaml anchor": lambda name, secret: f"{name.lower()}: &value {secret}\n",
    "fish": lambda name, secret: f"set -gx {name} {secret}",
    "setx": lambda name, secret: f"setx {name} {secret}",
    "secret from a pipe": lambda name, secret: f"echo {secret} | gh secret set {name}",
    "kubernetes string data": lambda name, secret: (
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\nstringData:\n  {name}: {secret}\n"
    ),
}  # fmt: skip

HEADERS: dict[str, Frame] = {
    "curl bearer": lambda _, secret: f"curl -s -H 'Authorization: Bearer {secret}' https://api.example.com/v1/me",
    "curl double quotes": lambda _, secret: (
        f'curl https://api.example.com -H "Authorization: Bearer {secret}" -d @x'
    ),
    "http dump": lambda _, secret: (
        f"GET /v1 HTTP/1.1\r\nHost: api.example.com\r\nAuthorization: Bearer {secret}\r\n\r\n"
    ),
    "header object": lambda _, secret: json.dumps(
        {"headers": {"Authorization": f"Bearer {secret}", "Accept": "*/*"}}
    ),
    "api key header": lambda _, secret: f"curl -H 'X-Api-Key: {secret}' https://api.example.com",
    "private token header": lambda _, secret: f"> PRIVATE-TOKEN: {secret}\n> Accept: */*",
    "token header": lambda _, secret: f"Authorization: token {secret}\n",
    "query": lambda _, secret: f"GET https://api.example.com/v1?limit=3&api_key={secret}&page=2 200",
    "access token in query": lambda _, secret: f"https://api.example.com/cb?access_token={secret}",
    "git remote": lambda _, secret: (
        f"origin\thttps://oauth2:{quoted(secret)}@git.example.com/acme/app.git (fetch)"
    ),
    "npmrc": lambda _, secret: f"//registry.example.com/:_authToken={secret}\nalways-auth=true",
    "prose": lambda _, secret: f"Use the API key {secret} for the staging account.",
    "prose with is": lambda _, secret: f"The access token is `{secret}`, keep it safe.",
}

PASSWORD_PLACES: dict[str, Frame] = {
    "url": lambda _, secret: f"postgresql://app:{quoted(secret)}@db.example.com:5432/shop?sslmode=require",
    "mongodb": lambda _, secret: f"mongodb+srv://admin:{quoted(secret)}@cluster0.mongodb.net/test",
    "redis": lambda _, secret: f"REDIS_URL=redis://:{quoted(secret)}@cache:6379/0",
    "amqp": lambda _, secret: f"amqps://svc:{quoted(secret)}@mq.example.com/vhost",
    "jdbc": lambda _, secret: f"jdbc:mysql://db:3306/app?user=root&password={quoted(secret)}&useSSL=true",
    "jdbc oracle": lambda _, secret: f"jdbc:oracle:thin:scott/{secret.replace('@', 'x')}@//db:1521/orcl",
    "odbc": lambda _, secret: f"Driver={{ODBC Driver 18}};Server=db1;Database=app;Uid=sa;Pwd={secret};Encrypt=yes;",
    "ado": lambda _, secret: f'"Server=db1;User Id=app;Password={secret};TrustServerCertificate=True"',
    "kafka": lambda _, secret: f'PlainLoginModule required username="app" password="{secret}";',
    "curl user": lambda _, secret: f"curl -u admin:{secret} https://example.com/api",
    "curl user long": lambda _, secret: f"curl --user 'admin:{secret}' https://example.com/api",
    "wget": lambda _, secret: f"wget --user=bob --password={secret} https://example.com/f.zip",
    "mysql": lambda _, secret: f"mysql -h db1 -uroot -p{secret} app < dump.sql",
    "sshpass": lambda _, secret: f"sshpass -p '{secret}' ssh root@10.0.0.5 uptime",
    "docker login": lambda _, secret: f"docker login -u acme -p {secret} registry.example.com",
    "pgpassword": lambda _, secret: f"PGPASSWORD='{secret}' psql -h db1 -U app -c 'select 1'",
    "redis-cli": lambda _, secret: f"redis-cli -h cache -a {secret} ping",
    "netrc": lambda _, secret: f"machine git.example.com\n  login bob\n  password {secret}\n",
    "netrc line": lambda _, secret: f"machine api.example.com login bob password {secret}\n",
    "pgpass": lambda _, secret: f"db.example.com:5432:shop:app:{secret.replace(':', 'x')}\n",
    "docker config": lambda _, secret: json.dumps({"auths": {"ghcr.io": {"auth": _base64(f"acme:{secret}")}}}, indent=1),
    "basic header": lambda _, secret: f"Authorization: Basic {_base64(f'admin:{secret}')}",
    "python auth": lambda _, secret: f"requests.get(url, auth=('admin', '{secret}'))",
    "prose": lambda _, secret: f"You can log in with the password: {secret}",
    "nested value": lambda _, secret: json.dumps({"adminPassword": {"value": secret}}),
    "pip index": lambda _, secret: f"pip install --index-url https://bob:{quoted(secret)}@pypi.example.com/simple acme",
    "openssl": lambda _, secret: f"openssl rsa -in key.pem -passin pass:{secret} -out plain.pem",
    "spring": lambda _, secret: f"spring.datasource.username=app\nspring.datasource.password={secret}\n",
    "maven": lambda _, secret: f"<server><id>nexus</id><username>ci</username><password>{secret}</password></server>",
    "identified by": lambda _, secret: f"CREATE USER 'bob'@'%' IDENTIFIED BY '{secret}';",
    "docker login from a pipe": lambda _, secret: f"echo {secret} | docker login -u bob --password-stdin",
    "sudo": lambda _, secret: f"echo '{secret}' | sudo -S apt update",
    "chpasswd": lambda _, secret: f"echo 'root:{secret}' | chpasswd",
    "htpasswd": lambda _, secret: f"htpasswd -b /etc/nginx/htpasswd bob {secret}",
    "net use": lambda _, secret: f"net use Z: \\\\srv\\share {secret} /user:bob",
    "keytool": lambda _, secret: f"keytool -list -keystore k.jks -storepass {secret}",
    "secure string": lambda _, secret: f'ConvertTo-SecureString "{secret}" -AsPlainText -Force',
    "redis configuration": lambda _, secret: f"requirepass {secret}\nport 6379",
    "typed by a program": lambda _, secret: f"driver.find_element(By.ID, 'password').send_keys('{secret}')",
    "form": lambda _, secret: f"POST /login\n\nusername=bob&password={quoted(secret)}&remember=1",
}  # fmt: skip


def camel(name: str) -> str:
    head, *rest = name.lower().split("_")
    return head + "".join(part.capitalize() for part in rest)


def kebab(name: str) -> str:
    return name.lower().replace("_", "-")


def quoted(secret: str) -> str:
    return secret.replace("#", "%23").replace("@", "%40").replace("/", "%2F").replace("&", "%26")


def _card(prefix: str, size: int) -> Make:
    def make(rng: random.Random) -> str:
        digits = [int(digit) for digit in prefix] + [rng.randrange(10) for _ in range(size - len(prefix) - 1)]
        doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[::-1][::2]]
        check = -(sum(digits[::-1][1::2]) + sum(doubled)) % 10
        return "".join(map(str, [*digits, check]))

    return make


def _wrapped(rng: random.Random, lines: int, width: int = 64) -> str:
    return "\n".join("".join(rng.choice(B64) for _ in range(width)) for _ in range(lines))


def _pem(label: str) -> Make:
    return lambda rng: f"-----BEGIN {label}-----\n{_wrapped(rng, 8)}\n-----END {label}-----"


def _putty(rng: random.Random) -> str:
    return (
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: bob@laptop\nPublic-Lines: 2\n"
        f"{_wrapped(rng, 2)}\nPrivate-Lines: 1\n{_wrapped(rng, 1, 48)}\nPrivate-MAC: {form('{h64}')(rng)}"
    )


BLOCKS: dict[str, Make] = {
    "rsa key": _pem("RSA PRIVATE KEY"),
    "pkcs8 key": _pem("PRIVATE KEY"),
    "encrypted key": _pem("ENCRYPTED PRIVATE KEY"),
    "ec key": _pem("EC PRIVATE KEY"),
    "openssh key": _pem("OPENSSH PRIVATE KEY"),
    "pgp key": lambda rng: _pem("PGP PRIVATE KEY BLOCK")(rng).replace("-----\n", "-----\n\n", 1),
    "putty key": _putty,
}
BLOCK_FRAMES: dict[str, Callable[[str], str]] = {
    "cat": lambda block: f"$ cat key\n{block}\n$ ",
    "json": lambda block: json.dumps({"type": "service_account", "private_key": block + "\n"}),
    "yaml": lambda block: "tls:\n  key: |\n" + "".join(f"    {line}\n" for line in block.splitlines()),
    "numbered": lambda block: "".join(
        f"{number:6}\t{line}\n" for number, line in enumerate(block.splitlines(), 1)
    ),
    "base64": lambda block: f"echo {_base64(block)} | base64 -d > key",
    "cut off": lambda block: "head key\n" + block[: len(block) * 2 // 3],
}

SIGNED_URLS: dict[str, Make] = {
    "s3 presigned": form(
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260301T000000Z&X-Amz-Signature={h64}"
    ),
    "gcs signed": form("https://storage.googleapis.com/b/o?X-Goog-Date=20260301T000000Z&X-Goog-Signature={h256}"),
    "azure sas url": form(
        "https://acme.blob.core.windows.net/c/f?sp=r&st=2026-03-01&sv=2022-11-02&sr=b&sig={a42}%3D"
    ),
    "cloudfront": form(
        "https://d1.cloudfront.net/v.mp4?Expires=1770000000&Signature={u120}__&Key-Pair-Id=K{U13}"
    ),
}


@dataclass(frozen=True)
class Case:
    """One secret in one context."""

    kind: str
    context: str
    texts: tuple[str, ...]
    """More than one for a secret that continues in the next text."""
    secret: str
    """The text that must not remain."""


def cases(seed: int) -> Iterator[Case]:
    """Yield every kind in every context that fits it, with values drawn by *seed*."""
    rng = random.Random(seed)
    for kind, (name, template) in TOKENS.items():
        secret = form(template)(rng)
        hidden = secret.split("sig=")[-1] if "sig=" in secret else secret
        hidden = hidden[8:40] if kind == "sentry dsn" else hidden
        for context, frame in ASSIGNMENTS.items():
            text = frame(name, secret)
            yield Case(kind, context, (text,), hidden if hidden in text else text)
        if "://" not in secret and "&" not in secret:
            for context, frame in HEADERS.items():
                yield Case(kind, context, (frame(name, secret),), secret)
    for number, (name, template) in enumerate(PASSWORDS):
        secret = form(template)(rng)
        for context, frame in {**ASSIGNMENTS, **PASSWORD_PLACES}.items():
            text = frame(name, secret)
            yield Case(f"password {number}", context, (text,), secret if secret in text else text)
    for kind, make in BLOCKS.items():
        block = make(rng)
        line = block.splitlines()[-2]
        for context, block_frame in BLOCK_FRAMES.items():
            text = block_frame(block)
            shown = block.splitlines()[5] if context == "cut off" else line
            yield Case(kind, context, (text,), shown if shown in text else text)
    for kind, make in SIGNED_URLS.items():
        url = make(rng)
        signature = url.partition("ignature=")[2].partition("&")[0] or url.partition("sig=")[2]
        for context, text in {
            "curl": f"curl -o f '{url}'", "json": json.dumps({"url": url}), "log": f"GET {url} 200 12ms",
        }.items():  # fmt: skip
            yield Case(kind, context, (text,), signature)
    for prefix, size in (("4", 16), ("51", 16), ("2221", 16), ("34", 15), ("6011", 16), ("30", 14)):
        card = _card(prefix, size)(rng)
        groups = (
            [card[at : at + 4] for at in range(0, 16, 4)] if size == 16 else [card[:4], card[4:10], card[10:]]
        )
        for context, text in {
            "json": json.dumps({"card_number": card, "exp": "12/29"}),
            "prose": f"Please charge my Visa card {' '.join(groups)}, exp 12/29.",
            "dashes": f"PAN {'-'.join(groups)}",
            "log": f"payment failed card={card} amount=12.00",
        }.items():
            yield Case(
                f"card {prefix}",
                context,
                (text,),
                next(part for part in (card, " ".join(groups), "-".join(groups)) if part in text),
            )
    for kind in (
        "github classic",
        "openai project",
        "slack bot",
        "aws access key",
        "stripe",
        "gitlab",
        "anthropic",
    ):
        secret = form(TOKENS[kind][1])(rng)
        cut = len(secret) // 2
        yield Case(kind, "two texts", (f"the token: {secret[:cut]}", f"{secret[cut:]} and more"), secret[cut:])
    for context, text, value in (
        ("cookie", "Cookie: theme=dark; session={}; lang=en", form("{a32}")(rng)),
        ("set-cookie", "Set-Cookie: connect.sid=s%3A{}; Path=/; HttpOnly", form("{a43}")(rng)),
        ("cookie in curl", "curl -b 'sessionid={}' https://example.com", form("{l32}")(rng)),
        ("cookie file", ".example.com\tTRUE\t/\tTRUE\t1770000000\tsid\t{}", form("{a40}")(rng)),
        ("shadow", "root:$6$abcdefgh${}:19000:0:99999:7:::", form("{a86}")(rng)),
        ("bcrypt", "bob:$2y$10${}", form("{a53}")(rng)),
        ("otp", "otpauth://totp/Acme:bob?secret={}&issuer=Acme", "JBSWY3DPEHPK3PXP"),
        ("digest", 'Authorization: Digest username="bob", response="{}"', form("{h32}")(rng)),
        ("aws signature", "Authorization: AWS4-HMAC-SHA256 Credential=x/20260301/eu/s3/aws4_request, Signature={}", form("{h64}")(rng)),
    ):  # fmt: skip
        yield Case("web", context, (text.format(value),), value)


def remains(case: Case, texts: list[str]) -> bool:
    """Return True if at least half of the secret, or a case without one visible, was not replaced."""
    after = "".join(texts)
    if case.secret in case.texts:
        return after == case.secret
    size = max(8, len(case.secret) // 2)
    pieces = {case.secret[at : at + size] for at in range(max(1, len(case.secret) - size + 1))}
    return any(piece in after for piece in pieces)
