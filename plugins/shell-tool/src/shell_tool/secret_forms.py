"""What looks like a secret among variables: by its name, or by the form of its value.

A variable is rather missed by a command than given away: whoever needs one that only looks like a secret
names it in `shell_env_allow`. The names that are exceptions are those that people have on their machines and
that say where something is, not what it is.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache

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
"""Names, in capitals, that stand for none although they look so: folders, programs that ask, the desktop."""

_ENDS = r"[\w.~+/=-]"
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
            rf"\b(?:bearer|basic)\s+{_ENDS}{{16,}}",
        )
    ),
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"(?:^|[^A-Za-z0-9])(?:"
    # OpenAI and others, Stripe, GitHub, GitLab, Slack
    r"sk-|[sr]k_(?:live|test)_|whsec_|gh[pousr]_|github_pat_|gl[a-z]{2,6}-|xox[a-z]-|xapp-"
    # AWS, Google, Hugging Face and other models
    r"|AKIA|ASIA|AIza|ya29\.|GOCSPX-|hf_|gsk_|xai-|r8_|pplx-|tvly-"
    # Packages and containers
    r"|npm_|pypi-|rubygems_|dckr_pat_"
    # Services
    r"|do[or]_v1_|dop_v1_|SG\.|shp(?:at|ca|pa|ss)_|sq0[a-z]{3}-|lin_api_|ntn_|figd_|hv[sb]\.|ATATT3|ATCTT3"
    r"|PMAK-|NRAK-|sntrys_|sntryu_|sbp_|tskey-|dp\.(?:pt|st)\.|dapi"
    # Signed or packed JSON, such as a JWT
    r"|eyJ"
    r")[\w.-]{16,}"
)


@lru_cache(maxsize=1024)
def looks_secret(name: str, value: str) -> bool:
    """Say whether a variable may be a secret."""
    return _is_secret_name(name.upper()) or _is_secret_value(value)


def _is_secret_name(name: str) -> bool:
    if any(fnmatchcase(name, pattern) for pattern in PLAIN_NAMES):
        return False
    return any(fnmatchcase(name, pattern) for pattern in SECRET_NAMES)


def _is_secret_value(value: str) -> bool:
    return _TOKEN.search(value) is not None or _SECRET_VALUE.search(value) is not None
