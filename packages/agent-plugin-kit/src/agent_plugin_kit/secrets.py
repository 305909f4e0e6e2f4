"""What secrets look like: by the name of a variable or field, by the form of a value, or within a text.

The recognisers are here, once; what is done with a secret is the caller's policy. Two questions are asked:

- May this variable be a secret (`looks_secret`)? It is better to withhold too much: whoever needs the
  variable can allow it by name.
- Where in this text is a secret (`SHAPES`)? Ordinary words must stay, so a shape asks for more: a start at
  the beginning of a word, and enough characters of the right kind behind it.

Hostile text must not make this slow. A shape is only tried where plain search found one of its starts, and
one that does not fit fails after a bounded number of characters. A shape also has a greatest length, so that
a stream never has to hold back more than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

SECRET_NAMES = (
    "KEY", "*_KEY", "*_KEYS", "*_KEY_*", "*APIKEY*", "*ACCESSKEY*", "*PRIVATE*KEY*",
    "*TOKEN*", "*SECRET*", "*CREDENTIAL*", "*CREDS", "*COOKIE*", "*WEBHOOK*", "*MNEMONIC*",
    "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*PASSCODE*", "*PASS", "*_PASS_*", "*PWD", "*_PWD_*", "*PW",
    "PAT", "*_PAT", "*_PIN", "*_OTP", "*_PSK", "*_JWT", "*BEARER*",
    "*_AUTH", "*_AUTHORIZATION", "*AUTH_CONFIG*", "*AUTH_HEADER*", "*_SESSION",
    "*_DSN", "*CONNECTION_STRING*", "*CONNECTIONSTRING*", "*CONNSTR*", "*CONN_STR*",
)  # fmt: skip
"""Names, in capitals, that stand for secrets."""

PLAIN_NAMES = ("PWD", "OLDPWD", "*ASKPASS", "DESKTOP_SESSION", "KDE_FULL_SESSION")
"""Names, in capitals, that look so and stand for no secret: folders, programs that ask, the desktop."""

SECRET_FIELDS = frozenset(
    [
        "api_key",
        "apikey",
        "x_api_key",
        "access_key",
        "secret_key",
        "private_key",
        "secret",
        "client_secret",
        "password",
        "passwd",
        "passphrase",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "authorization",
        "authorization_token",
        "proxy_authorization",
        "sig",
        "jwt",
    ]
)
"""Names of fields, in lower case with underscores, whose texts are secrets."""


class Shape(NamedTuple):
    """What a kind of secret looks like within a text.

    Attributes:
        starts: What it begins with, one of these; plain text.
        expression: The whole; its group is the secret.
        reach: How many characters it takes to know whether one has begun, and where it ends.
    """

    starts: tuple[str, ...]
    expression: re.Pattern[str]
    reach: int


class _Keys(NamedTuple):
    """Keys of services that begin alike."""

    starts: str
    body: str
    shortest: int


_KEYS = (
    _Keys("sk_live_ sk_test_ rk_live_ rk_test_ whsec_", "[A-Za-z0-9]", 16),  # Stripe
    _Keys("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "[A-Za-z0-9_]", 20),
    _Keys("glpat- xoxa- xoxb- xoxp- xoxr- xoxs- xapp-", "[A-Za-z0-9_-]", 16),  # GitLab, Slack
    _Keys("hf_ npm_", "[A-Za-z0-9]", 30),
    _Keys("AIza", "[A-Za-z0-9_-]", 35),  # Google
    _Keys("GOCSPX- gsk_ xai- pplx- tvly- r8_", "[A-Za-z0-9_-]", 20),  # Google, and other models
    _Keys("pypi- rubygems_ dckr_pat_", "[A-Za-z0-9_-]", 20),  # packages and containers
    _Keys("doo_v1_ dor_v1_ dop_v1_ shpat_ shpca_ shppa_ shpss_ lin_api_ figd_", "[A-Za-z0-9_-]", 20),
    _Keys("ATATT3 ATCTT3 PMAK- NRAK- sntrys_ sntryu_ sbp_ tskey-", "[A-Za-z0-9_=-]", 20),
)
_LONGEST_KEY = 1024
# Starts that are too short, or too much like words, to look for in a text; they count where a value begins.
_LOOSE = (
    r"sk-|gl[a-z]{2,6}-|xox[a-z]-|AKIA|ASIA|ya29\.|SG\.|sq0[a-z]{3}-|ntn_|hv[sb]\.|dp\.(?:pt|st)\.|dapi|eyJ"
)
_KEY_START = "|".join([_LOOSE, *(re.escape(start) for keys in _KEYS for start in keys.starts.split())])
_BEGINS_LIKE_A_KEY = re.compile(rf"(?:{_KEY_START}|[sr]k_)[\w./+=-]*")
_SHORTEST_WHOLE = 16


def _shape(keys: _Keys) -> Shape:
    starts = tuple(keys.starts.split())
    either = "|".join(map(re.escape, starts))
    # A "-" or "_" before it would put it into the middle of something longer, such as URL-safe base64.
    expression = rf"(?<![\w-])((?:{either}){keys.body}{{{keys.shortest},{_LONGEST_KEY}}}+)"
    return Shape(starts, re.compile(expression), max(map(len, starts)) + keys.shortest)


_PEM = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PEM_LONGEST = 16_384
_PEM_BODY = (
    rf"(?:(?:[^-]|-(?!----)){{0,{_PEM_LONGEST}}}-----END {_PEM}|[A-Za-z0-9+/=\s\\]{{0,{_PEM_LONGEST}}}+)"
)
_JWT_LONGEST = 4_096
_JWT_PART = rf"\.[A-Za-z0-9_-]{{4,{_JWT_LONGEST}}}+"

SHAPES: tuple[Shape, ...] = (
    # A digit among the first characters tells a key from words with hyphens between them.
    Shape(("sk-",), re.compile(r"(?<![\w-])(sk-(?=[A-Za-z_-]{0,63}[0-9])[A-Za-z0-9_-]{16,1024}+)"), 70),
    *map(_shape, _KEYS),
    Shape(("AKIA", "ASIA"), re.compile(r"(?<![A-Za-z0-9])(A[KS]IA[A-Z0-9]{16})(?![A-Za-z0-9])"), 21),
    Shape(
        ("eyJ",),
        re.compile(rf"(?<![\w-])(eyJ[A-Za-z0-9_-]{{8,{_JWT_LONGEST}}}+(?:{_JWT_PART}){{1,2}})"),
        3 * _JWT_LONGEST + 5,
    ),
    # Words in lower case are not credentials: "basic characteristics".
    Shape(
        ("Bearer ", "bearer ", "BEARER ", "Basic ", "basic ", "BASIC "),
        re.compile(r"(?<![\w-])[A-Za-z]{5,6} ((?=[a-z./-]{0,63}[A-Z0-9+=_~])[A-Za-z0-9._~+/=-]{16,4096}+)"),
        72,
    ),
    Shape(("://",), re.compile(r"://[^\s/@:\"'<>]{0,128}+:([^\s/@\"'<>]{1,128}+)@"), 261),
    Shape(("-----BEGIN ",), re.compile(f"(-----BEGIN {_PEM}{_PEM_BODY})"), _PEM_LONGEST + 200),
)
"""What secrets look like whose values nobody knows beforehand."""

_CREDENTIAL = r"[\w.~+/=-]"
_SECRET_VALUE = re.compile(
    "|".join(
        (
            # Addresses: with a password, with a long name that is one, with a signature; where to post to.
            r"://[^/\s:@]*:[^/\s@]+@",
            r"://[^/\s:@]{20,}@",
            r"^[\w.-]+:[^\s/@:]+@[\w.-]+(?:[:(/]|$)",
            r"[?&](?:[\w-]*(?:token|key|secret|password|signature)|sig)=[^&\s]{8,}",
            r"hooks\.slack\.com/|/api/webhooks/|webhook\.office\.com/|\b\d{8,10}:AA[\w-]{30,}",
            # Whole keys.
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY|LS0tLS1CRUdJTi|PuTTY-User-Key-File|AGE-SECRET-KEY-1",
            # Fields of connection strings and of JSON, and headers.
            r"(?:^|[;\s])(?:password|passwd|pwd|accountkey|sharedaccesskey|sharedaccesssignature)\s*=\s*[^;\s]",
            r"\"(?:auth|password|secret|private_key|[\w-]*token)\"\s*:\s*\"[^\"]",
            rf"\b(?:bearer|basic)\s+{_CREDENTIAL}{{16,}}",
        )
    ),
    re.IGNORECASE,
)
_TOKEN = re.compile(rf"(?:^|[^A-Za-z0-9])(?:{_KEY_START})[\w.-]{{16,}}")


@lru_cache(maxsize=1024)
def looks_secret(name: str, value: str) -> bool:
    """Say whether a variable may be a secret, by its name or by its value."""
    return is_secret_name(name) or is_secret_value(value)


def is_secret_name(name: str) -> bool:
    """Say whether a variable's name stands for a secret; capitals do not matter."""
    upper = name.upper()
    if any(fnmatchcase(upper, pattern) for pattern in PLAIN_NAMES):
        return False
    return any(fnmatchcase(upper, pattern) for pattern in SECRET_NAMES)


def is_secret_value(value: str) -> bool:
    """Say whether a value has the form of a secret, or has one in it."""
    return _TOKEN.search(value) is not None or _SECRET_VALUE.search(value) is not None


def begins_like_key(value: str) -> bool:
    """Say whether the whole of a value could be the key of a service, by how it begins."""
    return len(value) >= _SHORTEST_WHOLE and _BEGINS_LIKE_A_KEY.fullmatch(value) is not None


def is_secret_field(name: object) -> bool:
    """Say whether a field or an HTTP header of this name holds a secret."""
    if not isinstance(name, str):
        return False
    plain = name.replace("-", "_")
    return plain.lower() in SECRET_FIELDS or is_secret_name(plain)


def secret_values(settings: Any) -> Iterator[str]:
    """Yield every text in settings that may be a secret: by its field's name, or by its form.

    Everything below a field that holds a secret is one. Of a header such as "Bearer abc" the token is given
    as well, since that is what others quote.
    """
    if isinstance(settings, Mapping):
        for name, value in settings.items():
            yield from _texts(value) if _holds_secret(settings, name) else secret_values(value)
    elif isinstance(settings, (list, tuple)):
        for item in settings:
            yield from secret_values(item)
    elif isinstance(settings, str) and is_secret_value(settings):
        yield from _texts(settings)


def mask_secrets(settings: Any, mark: str = "[secret]") -> Any:
    """Return settings for showing: a mark stands in the place of every text that may be a secret."""
    return _masked(settings, mark, within=False)


def _holds_secret(settings: Mapping[Any, Any], field: object) -> bool:
    """Say whether a field does; headers may also be written as pairs of "name" and "value"."""
    return is_secret_field(settings.get("name") if field == "value" else field)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
        yield value.rpartition(" ")[2]
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _masked(settings: Any, mark: str, *, within: bool) -> Any:
    """Return settings with marks; *within* a secret field in the place of every text."""
    if isinstance(settings, Mapping):
        return {
            name: _masked(value, mark, within=within or _holds_secret(settings, name))
            for name, value in settings.items()
        }
    if isinstance(settings, (list, tuple)):
        return [_masked(item, mark, within=within) for item in settings]
    secret = isinstance(settings, str) and settings and (within or is_secret_value(settings))
    return mark if secret else settings
