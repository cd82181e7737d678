#!/usr/bin/env python3
"""Leases: the right to write a file for a while.

A lease ends by itself, so that a dead worker blocks nobody.
"""
import time


class Lease:
    """The right to write one path until a moment."""

    def __init__(self, path: str, until: float):
        self.path = path
        self.until = until

    def is_over(self, now: float) -> bool:
        """Whether the lease has ended."""
        return now >= self.until

    def _private(self):
        pass


def take(path: str, seconds: int = 900) -> Lease:
    """Takes a lease on a path; it ends after so many seconds."""
    until = deadline(seconds)
    return Lease(path, until)


def deadline(seconds: int) -> float:
    """The moment that lies so many seconds ahead."""
    # Never the wall clock: it may be set back.
    return time.monotonic() + seconds
