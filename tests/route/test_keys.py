"""Keys: what is wrong with one is said before the first call, and no message shows any of it."""

import pytest

from xspec.errors import UserError
from xspec.route.keys import fingerprint, owner_of, read_key, scrub

KEY = "sk-proj-0123456789abcdef"


def test_a_good_key() -> None:
    assert read_key("K", {"K": KEY}) == KEY


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (None, "not set"),
        ("", "empty"),
        (" \n", "empty"),
        (f'"{KEY}"', "quotes"),
        (f"'{KEY}'", "quotes"),
        (f"\u201c{KEY}\u201d", "quotes"),
        (f'{KEY}"', "quotes"),
        (f" {KEY}", "white space"),
        (f"{KEY}\n", "newline"),
        (f"{KEY}\r\n", "newline"),
        (f"\t{KEY}", "white space"),
        (f"{KEY}\u200b", "ASCII"),
        (f"\ufeff{KEY}", "ASCII"),
        (KEY.replace("0", "\u041e"), "ASCII"),
        (KEY.replace("0", "\x00"), "ASCII"),
        (KEY.replace("0", "\n"), "ASCII"),
        (KEY.replace("0", " "), "inside"),
        (f"Bearer {KEY}", "Bearer"),
    ],
)
def test_a_bad_key(value: str | None, wrong: str) -> None:
    with pytest.raises(UserError) as caught:
        read_key("MY_KEY", {} if value is None else {"MY_KEY": value})
    message = str(caught.value)
    assert "MY_KEY" in message
    assert wrong in message
    assert "\n" not in message
    assert not any(part in message for part in ("sk-proj", "123456", "abcdef"))


def test_fingerprints_are_golden_and_differ() -> None:
    """They stand in stored locks: they may never change."""
    assert fingerprint(KEY) == GOLDEN
    assert fingerprint(KEY + "x") != fingerprint(KEY)


@pytest.mark.parametrize(
    ("key", "owner"),
    [
        ("sk-or-v1-x", "OpenRouter"),
        ("sk-ant-x", "Anthropic"),
        (KEY, "OpenAI"),
        ("sk-x", None),
        ("tt-x", None),
    ],
)
def test_owners(key: str, owner: str | None) -> None:
    assert owner_of(key) == owner


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        f"key={KEY}&x",
        f"sent Bearer {KEY}",
        "a" * 290 + KEY,
        "other keys too: sk-abcdefgh12345678 and sk-ab***********wxyz",
        "authorization: bearer abcdef0123456789",
    ],
)
def test_scrubbing(text: str) -> None:
    clean = scrub(text, (KEY,))
    assert not any(part in clean for part in ("123456", "abcdef", "wxyz"))
    assert len(clean) <= 300


def test_scrubbed_text_is_one_printable_line() -> None:
    assert scrub("two\nlines\x1b[31m and\ttabs 不行", ()) == "two lines [31m and tabs 不行"


GOLDEN = "kf-87539950"
