"""Keeps slugs unique within a site."""
from .slug import slug


class Names:
    """Remembers the slugs that were given out."""

    def __init__(self):
        self.taken = {}

    def give(self, title: str) -> str:
        """Returns a slug that nobody has; the second one gets -2, the third -3.

        An empty slug becomes "untitled", because an address must not be empty.
        """
        base = slug(title) or "untitled"
        count = self.taken.get(base, 0) + 1
        self.taken[base] = count
        return base if count == 1 else f"{base}-{count}"
