"""The ways from a native value to a member: the closed list that ``via`` in a ``[[fact]]`` names.

Owns one pure function for each conversion, for importers and audit alike, and the reading of a harness's own tags
(decision 8). A function that cannot convert gives ``MISSING``: it never guesses and never raises.

Must never know: records, files, which member a value is for.
"""

from __future__ import annotations

import base64 as _base64
import binascii
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from callsheet.registry.when import MISSING, json_type
from callsheet.wire import lossless

_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")
_WRAPPED = re.compile(r"\s*<([a-z][a-z-]{0,40})>")
_OPEN = re.compile(r"<([a-z][a-z-]{0,40})>")
_END = re.compile(r"</([a-z][a-z-]{0,40})>\Z")
_TRAILED = frozenset(("task-notification",))
"""Tags that the harness writes words after."""
_TAGS_WITHIN = 20_000


def same(value: Any) -> Any:
    """The value as it stands."""
    return value


def json_text(value: Any) -> Any:
    """The value of a JSON text."""
    if not isinstance(value, str):
        return MISSING
    try:
        return lossless.decode(value.encode("utf-8", "surrogatepass"))
    except lossless.NotJson:
        return MISSING


def utc(value: Any) -> Any:
    """A time as RFC 3339 UTC: the text itself where it is one, converted where it names another offset."""
    if not isinstance(value, str):
        return MISSING
    if _UTC.fullmatch(value):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return MISSING
    if moment.tzinfo is None:
        return MISSING
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return MISSING


def ms_to_rfc3339(value: Any) -> Any:
    """A count of milliseconds since 1970 as RFC 3339 UTC, three digits of a second; a negative one is no time."""
    if json_type(value) != "number" or value < 0:
        return MISSING
    try:
        moment = datetime.fromtimestamp(int(value) // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return MISSING
    return f"{moment.isoformat()[:19]}.{int(value) % 1000:03}Z"


def secs_to_rfc3339(value: Any) -> Any:
    """A count of seconds since 1970, with a fraction, as RFC 3339 UTC, three digits of a second."""
    return (
        ms_to_rfc3339(round(float(value) * 1000))
        if json_type(value) == "number" and abs(value) < 1e12
        else MISSING
    )


def secs_nanos(value: Any) -> Any:
    """Milliseconds of a duration: ``{secs, nanos}``, or a plain number of seconds."""
    if isinstance(value, dict):
        secs, nanos = value.get("secs"), value.get("nanos")
        if not isinstance(secs, int | float) or not isinstance(nanos, int | float):
            return MISSING
        try:
            value = secs + nanos / 1e9
        except OverflowError:
            return MISSING
    return round(value * 1000, 3) if json_type(value) == "number" else MISSING


def difference(start: Any, end: Any) -> Any:
    """Milliseconds between two times of one result (ASR-261); counts of milliseconds or RFC 3339."""
    if json_type(start) == json_type(end) == "number":
        return end - start
    try:
        span = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (TypeError, ValueError):
        return MISSING
    return span.total_seconds() * 1000


def file_url(value: Any) -> Any:
    """The path in a ``file:`` URL."""
    if not isinstance(value, str):
        return MISSING
    try:
        parts = urlsplit(value)
    except ValueError:
        return MISSING
    return unquote(parts.path) if parts.scheme == "file" else MISSING


def base64(value: Any) -> bytes | None:
    """The bytes of a base64 text, or None."""
    try:
        return _base64.b64decode(value, validate=True) if isinstance(value, str) else None
    except (binascii.Error, ValueError):
        return None


def join(*values: Any, sep: str = "/") -> Any:
    """Texts joined; a part that is missing or no text is left out, and of nothing comes nothing."""
    kept = [value for value in values if isinstance(value, str)]
    return sep.join(kept) if kept else MISSING


def derived_id(*values: Any) -> Any:
    """A derived call id: ``<native id>#<record id>``, ``#<record id>`` without one, ``/<index>`` where one is given."""
    if len(values) == 1:
        return f"#{values[0]}" if isinstance(values[0], str) else MISSING
    native, record, *rest = values
    head = native if isinstance(native, str) else ""
    return f"{head}#{record if isinstance(record, str) else ''}" + "".join(f"/{one}" for one in rest)


def numbers(value: Any) -> Any:
    """Every number of a nested object as ``{name, value}``, nested names joined with dots (usage counts)."""
    if not isinstance(value, dict):
        return MISSING
    return [{"name": name, "value": number} for name, number in _numbers(value, "")]


def _numbers(value: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, dict):
            if len(prefix) < 200:
                yield from _numbers(item, f"{prefix}{name}.")
        elif json_type(item) == "number":
            if isinstance(item, int):
                fits = abs(item) <= lossless.MAX_SAFE
            else:
                fits = item == item and abs(item) != float("inf")
            if fits:
                yield prefix + name, item


# -- a harness's own tags (decision 8) --------------------------------------------------------------------------


def wrapped_in(text: Any) -> str | None:
    """The tag that a whole text stands in, or None; of several side by side, the first.

    After a notice the harness goes on in words of its own; everywhere else words beside the tags say that a person
    (or a model) wrote them.
    """
    found = _WRAPPED.match(text) if isinstance(text, str) else None
    if found is None:
        return None
    tag = found.group(1)
    if tag in _TRAILED:
        return tag if text.find(f"</{tag}>", found.end()) >= 0 else None
    end = _END.search(text.rstrip()[-50:])
    if end is None:
        return None
    last = end.group(1)
    return tag if last == tag or re.search(f"</{tag}>\\s*<{last}>", text) else None


def tags(text: Any) -> dict[str, str]:
    """The tags inside a wrapped text; the first of a name counts."""
    if not isinstance(text, str):
        return {}
    found = _WRAPPED.match(text)
    inner = text[found.end() :] if found else text
    inner = inner[:_TAGS_WITHIN]
    values: dict[str, str] = {}
    endless: set[str] = set()
    at = 0
    while (opened := _OPEN.search(inner, at)) is not None:
        name, at = opened.group(1), opened.end()
        end = -1 if name in endless else inner.find(f"</{name}>", at)
        if end < 0:
            endless.add(name)
            continue
        values.setdefault(name, inner[at:end])
        at = end + len(name) + 3
    return values


def slice_of(text: Any, tag: str | None = None) -> Any:
    """What stands between a tag and its last end; for a wrapped text, in the tags inside it."""
    if not isinstance(text, str) or tag is None:
        return MISSING
    if wrapped_in(text) not in (None, tag):
        return tags(text).get(tag, MISSING)
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end] if 0 <= start < end else MISSING


PURE: dict[str, Callable[..., Any]] = {
    "same": same,
    "json_text": json_text,
    "utc": utc,
    "ms_to_rfc3339": ms_to_rfc3339,
    "secs_to_rfc3339": secs_to_rfc3339,
    "secs_nanos": secs_nanos,
    "difference": difference,
    "file_url": file_url,
    "numbers": numbers,
}
"""Conversions that need nothing but the pointed values."""

VIAS: frozenset[str] = frozenset(
    {*PURE, "slice", "join", "derived_id", "table", "parts", "path", "base64", "exact_text", "index", "file"}
)
"""Every ``via``; what the others need besides the value is told in ``facts.Fact``."""
