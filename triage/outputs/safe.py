"""Log text is hostile: make it inert before it reaches a terminal."""

from __future__ import annotations

import re
import unicodedata

_SECRET = re.compile(
    r"(?P<head>(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|authorization|bearer)[\"']?\s*[=: ]\s*[\"']?(?:bearer\s+)?)"
    r"(?P<value>[^\s\"',;&]{6,})"
    r"|(?P<url>[a-z][a-z0-9+.-]{1,15}://[^\s:/@]{1,64}:)(?P<pass>[^\s@/]{1,128})(?=@)"
    r"|(?P<key>\b(?:ghp_|gho_|github_pat_|glpat-|xox[abp]-|hf_|sk-|AKIA|ASIA|AIza|eyJ)[A-Za-z0-9_.\-]{12,})",
    re.I,
)


def mask(text: str) -> str:
    """Replace secrets (passwords, tokens, keys, credentials in URLs) by ``***``."""
    return _SECRET.sub(lambda m: (m["head"] or m["url"] or "") + "***", text)


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
