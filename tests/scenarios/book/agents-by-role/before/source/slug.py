"""Turns titles into slugs for web addresses."""
import re
import unicodedata

#: Longer slugs are cut at a word.
LONGEST = 60


def slug(title: str) -> str:
    """Lower case, ASCII letters and digits, words joined by hyphens.

    Accents are removed, not replaced by words: "Café" becomes "cafe".
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    return cut("-".join(words))


def cut(text: str, longest: int = LONGEST) -> str:
    """Cuts at the last hyphen before the limit, so that no word is broken."""
    if len(text) <= longest:
        return text
    head = text[:longest]
    return head.rsplit("-", 1)[0] if "-" in head else head
