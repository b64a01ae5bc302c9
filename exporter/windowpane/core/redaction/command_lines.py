"""Passwords and tokens in command lines: the option, the place or the command that they are given to."""

from __future__ import annotations

import re
from typing import Final

from windowpane.core.redaction.location import QUOTE, Location
from windowpane.core.redaction.values import is_explicit, is_password, is_token

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
