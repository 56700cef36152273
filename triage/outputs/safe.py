"""Log text is hostile: make it inert before it reaches a terminal."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Final

_WORD = r"(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)"
_SECRET: Final = re.compile(
    # NAME=value, "name": "value", Authorization: Bearer value; --name value. "per token latency" is no secret.
    rf"(?P<head>(?:{_WORD}|authorization)[\"']?\s{{0,4}}[=:]\s{{0,4}}[\"']?(?:(?:bearer|basic|token)\s+)?"
    rf"|(?<=-)-[\w-]{{0,40}}{_WORD}\s+[\"']?|\bbearer\s+(?=[^\s]{{16}}))"
    r"(?P<value>[^\s\"',;&]{6,})"
    r"|(?P<url>\b[a-z][a-z0-9+.-]{1,15}://[^\s:/@]{0,64}:)[^\s@/]{1,128}(?=@)"
    r"|\b(?-i:(?:gh[opsu]_|github_pat_|glpat-|xox[abps]-|hf_|sk-(?:proj-|ant-)?(?=\w{16})|AKIA|ASIA|AIza|eyJ)(?=[A-Za-z_.\-]*[0-9])[A-Za-z0-9_.\-]{16,})",
    re.I,
)


def mask(text: str) -> str:
    """Replace secrets (passwords, tokens, keys, credentials in URLs) by ``***``."""
    return _SECRET.sub(lambda m: (m["head"] or m["url"] or "") + "***", text)


def masked(value: Any) -> Any:
    """Return a JSON value with the secrets in its texts masked; keys and paths stay, they are what a reader looks up."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {key: item if key == "path" else masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON that is safe to print and to keep: secrets masked, nothing in it acts on a screen."""
    return escaped_json(masked(value), indent)


def escaped_json(value: Any, indent: int | None = None) -> str:
    """Return JSON with control, bidirectional and zero-width characters as JSON escapes."""
    return _ACTIVE.sub(_json_escape, json.dumps(value, indent=indent, ensure_ascii=False))


_ACTIVE: Final = re.compile(r"[^\n -~\u00a1-\u00ac\u00ae-\u02ff]")


def _json_escape(found: re.Match[str]) -> str:
    return found[0] if _harmless(found[0]) else json.dumps(found[0])[1:-1]


def visible(text: str) -> str:
    """Show control, bidirectional and zero-width characters as escapes, so that nothing in a log line acts on a screen."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c == "\t" or _harmless(c) else _escape(c) for c in text)


def _harmless(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
