"""The claims in the cookie that Streamlit gives a signed-in browser, for requests that no page answers.

Pages read them as `st.user`. Streamlit has no public function for other requests, so its functions that read the
cookie are called here; where they are missing or change, downloads are refused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)


def claims_in(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Return the claims of a signed-in browser; empty for a missing, forged or expired cookie."""
    try:
        from streamlit.auth_util import get_cookie_with_chunks
        from streamlit.web.server.server_util import get_cookie_secret
        from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
        from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME
    except ImportError:
        logger.exception("this release of Streamlit keeps the sign-in elsewhere: downloads are refused")
        return {}
    secret = get_cookie_secret()

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        return None if value is None else decode_signed_value(secret, name, value)

    raw = get_cookie_with_chunks(signed, USER_COOKIE_NAME)
    try:
        claims = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) and claims.get("is_logged_in") is True else {}
