"""Judgement of a value that is assigned to the name of a secret: random, or a word, a type, an expression."""

from __future__ import annotations

import re

_DIGIT = re.compile(r"[0-9]")
_LETTER = re.compile(r"[^\W\d_]")
_SYMBOL = re.compile(r"[!@#$%^&*?~+]")
_PLAIN_WORD = re.compile(r"[A-Za-z]*\d{0,2}")
_LETTERS = re.compile(r"[A-Za-z_-]+")
_TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9+/=_.~%-]+")
_HEXADECIMAL = re.compile(r"[0-9a-f]{32,}")
_WORD_EDGES = re.compile(r"[\s._/:@#=+,&-]+")
_NAME_EDGES = re.compile(r"(?:/#|[\s._/:=+,&-])+")
"""Characters between the parts of a name of a thing; passwords contain the others too."""
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}")
_REFERENCE = re.compile(
    r"\$(?:[{(]|[A-Za-z_]\w*+(?![!#%^&*?~+@=]))|%(?:[({]|[A-Za-z_]\w*+%|[sdrv](?!\w))|\{|<|\*{3}|\.{3}|@[A-Z{]|/(?:run|etc|var|home|tmp|usr|opt|root|mnt|proc|app)/|~/|\./"
    r"|(?:https?|file)://|(?:process|os|import\.meta|secrets|vars|env|self|this|config|settings|req|request|args|ctx)\."
)
"""The start of a variable, a template, a mask, a path or an expression."""
_PLACEHOLDER_MARKS = ("xxxx", "...", "…", "***", "[redacted:", "00000000", "1234567890123456", "{{")
_ELEMENT = re.compile(r"<[^<>]{0,64}>|<\Z")
_PLACEHOLDER_TERMS = (
    "your", "example", "sample", "placeholder", "redacted", "dummy", "fake", "insert", "replace", "todo", "fixme",
    "undefined", "changeme", "change_me", "change-me", "here",
)  # fmt: skip
_WORD_OF_PLACEHOLDER = re.compile(rf"(?<![a-z])(?:{'|'.join(_PLACEHOLDER_TERMS)})(?![a-z])")
_BETWEEN_PARTS = re.compile(r"[^A-Za-z0-9]+")
_WORD_OR_NUMBER = re.compile(r"(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*|[A-Z]*)\d{0,2}|\d{1,9}")
_IDENTIFIER = re.compile(r"[A-Z]{0,2}[a-z]*(?:[A-Z][a-z]+)*[A-Z]*\d{0,2}|[A-Z]+[a-z]{2,}\d{0,2}")
_MIN_RANDOM_WORD = 5
_HYPHENATED = re.compile(r"[A-Za-z]{2,12}(?:-[A-Za-z]{2,12}){1,9}+(?P<number>-?\d{1,4})?")
_NUMBERED_WORD = re.compile(r"[A-Za-z]*+\d{0,3}+[A-Za-z]*+")
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w{0,63}+(?:\.[A-Za-z_]\w{0,63}+){1,7}")
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]{0,31}+(?:_[A-Z0-9]{1,32}+){1,7}")
_CALL = re.compile(r"[\w.]*+\(")
_OPERATORS = ("&&", "==", "!=", "(?", "$(")
"""Within an expression, a pattern or a command."""
_RARE_SYMBOLS = frozenset("!@#$%^")
"""Symbols of generated passwords that expressions seldom have two of."""
_MIN_RARE_SYMBOLS = 2
_MIN_SYMBOLS = 5
_PASSPHRASE = re.compile(r"[A-Za-z]{3,12}([-_. ])(?:[A-Za-z]{3,12}\1){2,9}(?:[A-Za-z]{3,12}\1)?\d{1,4}")
_FORM_TERMS = frozenset(
    (
        "password", "passwd", "secret", "token", "key", "user", "login", "reset", "field", "input", "form",
        "label", "the", "and", "for", "test", "new", "old", "name", "file", "path", "value", "string", "error",
        "svc",
        "app", "prod", "dev", "staging", "config", "manager", "vault", "arn", "aws", "com", "version",
        "policy", "auth",
    )
)  # fmt: skip
_TERMS_OF_METHODS = frozenset(
    ("sha", "aes", "rsa", "hmac", "scram", "utf", "iso", "rfc", "not", "case", "show", "hide")
)
_TYPED_SEQUENCES = ("abc", "123", "foo")
"""Sequences that people type instead of a value."""
_COMMON_LETTERS = (
    "thheineranrendatonnthaesstenedtoitoueahiisortiasteetngofaldeselesasiarveraldurcerirolliciolicome"
    "eltalanonemaecdiombeuschtrcapesoacunhottssloutileeotweownsgepridwhponactemaioladieciammoplshsuts"
    "upopfifokelyrsueulviabclagpaxtosyetyuievifimirdaapblmpepspdoqucuoockrygrayobscypptpibumiwoboniey"
    "efexok"
)
_COMMON_PAIRS = frozenset(_COMMON_LETTERS[at : at + 2] for at in range(0, len(_COMMON_LETTERS), 2))
"""Pairs of letters that make up most of English text and of identifiers."""

_MIN_PASSWORD_CHARACTERS = 6
_MIN_TOKEN_CHARACTERS = 16
_MIN_MIXED_CHARACTERS = 10
_MIN_STRONG_CHARACTERS = 20
_MIN_DISTINCT_CHARACTERS = 8
_MAX_COMMON_PAIRS = 0.45
"""Share of common pairs in letters that are a word; random letters have a third of it."""


def is_explicit(value: str) -> bool:
    """Return True for any *value* that is not a reference or a placeholder: nothing else can be there."""
    return (
        len(value) >= 3 and not _is_no_value(value) and value.lower() not in _NO_SECRETS and len(set(value)) > 2
    )


_NO_SECRETS = frozenset(
    (
        "password", "passwd", "pass", "pwd", "secret", "token", "user", "username", "none", "null", "true",
        "false", "string", "str", "text", "any", "test", "key", "value", "pw", "mypassword",
        "yourpassword", "host", "localhost", "apikey", "api_key", "port",
    )
)  # fmt: skip


def is_password(value: str) -> bool:
    """Return True if *value* is a password and not a word, a number, a type or an expression.

    Words joined by dots, underscores or slashes are names of things (`process.env.API_KEY_2`), however long.
    """
    if len(value) < _MIN_PASSWORD_CHARACTERS or not _LETTER.search(value) or _is_no_value(value):
        return False
    if not _DIGIT.search(value):
        return _SYMBOL.search(value) is not None or (value.isalpha() and is_gibberish(value))
    if is_plain_text(value, _NAME_EDGES):
        return value.isalnum() or _is_passphrase(value)
    return _ADDRESS.fullmatch(value) is None


def is_named_password(value: str) -> bool:
    """Return True for a password and for words with a number (`correct-horse12`), as the value of such a name."""
    return is_password(value) or _is_hyphenated(value, with_number=True)


def is_environment_password(value: str) -> bool:
    """Return True for a password and for words joined by hyphens, as the value of an environment variable."""
    return is_password(value) or _is_hyphenated(value, with_number=False)


def is_access_token(value: str) -> bool:
    """Return True for a token without symbols: the same name is short for a pattern and a patch."""
    return (
        len(value) >= _MIN_STRONG_CHARACTERS
        and value.replace("_", "a").replace("-", "a").isalnum()
        and is_token(value)
    )


def is_symbolic(value: str) -> bool:
    """Return True for a random value with parentheses or an ampersand, and not for an expression."""
    if len(value) < _MIN_STRONG_CHARACTERS or _CALL.match(value) or any(mark in value for mark in _OPERATORS):
        return False
    symbols = [character for character in value if not character.isalnum()]
    if len(symbols) < _MIN_SYMBOLS or len(_RARE_SYMBOLS.intersection(symbols)) < _MIN_RARE_SYMBOLS:
        return False
    return _is_mixed(value) and not is_plain_text(value, _BETWEEN_PARTS)


def is_token(value: str) -> bool:
    """Return True if *value* is a generated key: long, of many characters, and not made of words."""
    if len(value) < _MIN_MIXED_CHARACTERS or len(set(value)) < _MIN_DISTINCT_CHARACTERS or _is_no_value(value):
        return False
    if not _DIGIT.search(value):
        return (
            len(value) >= _MIN_TOKEN_CHARACTERS and _LETTERS.fullmatch(value) is not None and is_gibberish(value)
        )
    if not _LETTER.search(value) or is_plain_text(value):
        return False
    if _is_name_of(value, _DOTTED_NAME) or _is_name_of(value, _CONSTANT):
        return False
    return len(value) >= _MIN_TOKEN_CHARACTERS or _is_mixed(value)


def is_strong_token(value: str) -> bool:
    """Return True if *value* is a token even where its name promises little (`cache_key`, `key`)."""
    if len(value) < _MIN_STRONG_CHARACTERS or _TOKEN_CHARACTERS.fullmatch(value) is None:
        return False
    return is_token(value) and (_is_mixed(value) or _HEXADECIMAL.fullmatch(value) is not None)


def is_gibberish(letters: str) -> bool:
    """Return True if the letters of a value do not follow each other as in words."""
    lowered = [part for part in re.split(r"[^a-z]+", letters.lower()) if len(part) > 1]
    pairs = [part[at : at + 2] for part in lowered for at in range(len(part) - 1)]
    if len(pairs) < 10:
        return False
    return sum(pair in _COMMON_PAIRS for pair in pairs) / len(pairs) < _MAX_COMMON_PAIRS


def _is_no_value(value: str) -> bool:
    """Return True for a reference and for a placeholder."""
    folded = value.lower()
    if _REFERENCE.match(value) is not None or any(mark in folded for mark in _PLACEHOLDER_MARKS):
        return True
    if "<" in value and _ELEMENT.search(value) is not None:
        return True
    if not any(word in folded for word in _PLACEHOLDER_TERMS) or _WORD_OF_PLACEHOLDER.search(folded) is None:
        return False
    return all(map(_is_word_or_sequence, _BETWEEN_PARTS.split(value)))


def _is_word_or_sequence(part: str) -> bool:
    """Return True for a part of a placeholder; a random value can contain the word of one (`Xk2-here-9vQ`)."""
    if _WORD_OR_NUMBER.fullmatch(part) is not None:
        return True
    folded = part.lower()
    return any(sequence in folded for sequence in _TYPED_SEQUENCES)


def is_plain_text(value: str, edges: re.Pattern[str] = _WORD_EDGES) -> bool:
    """Return True for words and the names of things, joined by *edges* such as dots, underscores or slashes."""
    parts = edges.split(value.replace("_", "."))
    return all(_PLAIN_WORD.fullmatch(part) for part in parts) and not any(map(_is_random_word, parts))


def _is_random_word(word: str) -> bool:
    """Return True for letters in a case and an order that neither words nor identifiers have (`pRwAPc`)."""
    if len(word) < _MIN_RANDOM_WORD or _IDENTIFIER.fullmatch(word) is not None:
        return False
    folded = word.lower()
    pairs = [folded[at : at + 2] for at in range(len(word) - 1)]
    return sum(pair in _COMMON_PAIRS for pair in pairs) / len(pairs) < _MAX_COMMON_PAIRS


def _is_passphrase(value: str) -> bool:
    """Return True for four and more words with a number, joined by one character; no word is one of forms."""
    if _PASSPHRASE.fullmatch(value) is None:
        return False
    return _FORM_TERMS.isdisjoint(_BETWEEN_PARTS.split(value.lower()))


def _is_hyphenated(value: str, *, with_number: bool) -> bool:
    """Return True for words joined by hyphens, none of which is one of forms or of a method."""
    match = _HYPHENATED.fullmatch(value)
    if match is None or (with_number and match["number"] is None) or _is_no_value(value):
        return False
    parts = re.findall(r"[a-z]+", value.lower())
    return _FORM_TERMS.isdisjoint(parts) and _TERMS_OF_METHODS.isdisjoint(parts)


def _is_name_of(value: str, pattern: re.Pattern[str]) -> bool:
    """Return True for a name with numbers in its words: `win32api.RegOpenKeyEx`, `KEY_WOW64_32KEY`."""
    if pattern.fullmatch(value) is None or is_gibberish(value):
        return False
    parts = value.replace("_", ".").split(".")
    if not all(map(_NUMBERED_WORD.fullmatch, parts)):
        return False
    return not any(map(_is_random_word, re.findall(r"[A-Za-z]+", value)))


def _is_mixed(value: str) -> bool:
    """Return True for small and capital letters and digits."""
    return value != value.lower() and value != value.upper() and _DIGIT.search(value) is not None
