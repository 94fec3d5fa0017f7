"""What a session lets a client set: its mode and its model, in every spelling that agents use.

Owns the three spellings (``configOptions`` of a category, v1 ``modes``, the unstable ``models``), what is chosen now,
and the request that chooses.

Must never know: what a mode means.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from callsheet.harness._port.parts import ABSENT, items_of, members_of, text_of

SETTINGS = ("model", "mode")
"""What may be wished for, in the order in which it is set."""


class Offer(Struct, frozen=True):
    """One thing that can be set.

    Attributes:
        choices: Ids of what can be chosen.
        current: Id of what is chosen.
        method: The request that chooses.
        member: The member of that request that takes the choice.
        params: Its other members.
    """

    choices: tuple[str, ...]
    current: str | None
    method: str
    member: str
    params: dict[str, str]


def offers_of(result: dict[str, Raw], version: int) -> dict[str, Offer]:
    """What a response (or ``config_option_update``) offers, by ``SETTINGS``."""
    found: dict[str, Offer] = {}
    for setting, whole, listed, key, current in (
        ("mode", "modes", "availableModes", "id", "currentModeId"),
        ("model", "models", "availableModels", "modelId", "currentModelId"),
    ):
        told = members_of(result.get(whole, ABSENT))
        choices = _ids(told.get(listed, ABSENT), key)
        if choices:
            found[setting] = Offer(
                choices, text_of(told.get(current, ABSENT)), f"session/set_{setting}", f"{setting}Id", {}
            )
    for item in items_of(result.get("configOptions", ABSENT)):
        told = members_of(item)
        name = text_of(told.get("configId" if version > 1 else "id", ABSENT))
        setting = text_of(told.get("category", ABSENT)) or name or ""
        if name is None or setting not in SETTINGS or text_of(told.get("type", ABSENT)) != "select":
            continue
        params = {"configId": name} | ({"type": "id"} if version > 1 else {})
        found[setting] = Offer(
            _ids(told.get("options", ABSENT), "value"),
            text_of(told.get("currentValue", ABSENT)),
            "session/set_config_option",
            "value",
            params,
        )
    return found


def _ids(raw: Raw, key: str) -> tuple[str, ...]:
    """Ids of a list of choices, also of one that is parted into groups."""
    found: list[str] = []
    for item in items_of(raw):
        told = members_of(item)
        name = text_of(told.get(key, ABSENT))
        found += [name] if name is not None else _ids(told.get("options", ABSENT), key)
    return tuple(found)
