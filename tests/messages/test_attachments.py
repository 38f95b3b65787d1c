"""Pictures and texts go with a prompt as parts of it; what cannot go along is refused, and nothing of it sent."""

from __future__ import annotations

import base64
import io
import os

import pytest
from PIL import Image

from sessions_lib.errors import SessionError
from sessions_lib.messages import attachments


def picture(kind: str = "PNG", size: tuple[int, int] = (2, 2)) -> bytes:
    made = io.BytesIO()
    Image.frombytes("RGB", size, os.urandom(3 * size[0] * size[1])).save(made, kind)
    return made.getvalue()


def test_without_files_a_prompt_is_a_text() -> None:
    assert attachments.content("Hi", []) == "Hi"


@pytest.mark.parametrize(
    ("kind", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp"), ("GIF", "image/gif")]
)
def test_a_picture_goes_along_whole_whatever_it_is_called(kind: str, mime: str) -> None:
    data = picture(kind)
    first, second = attachments.content("Look.", [("a.txt", data)])

    assert first == {"type": "text", "text": "Look."}
    url = second["image_url"]["url"]
    assert url.startswith(f"data:{mime};base64,")
    assert base64.b64decode(url.partition(",")[2]) == data


def test_a_text_goes_along_under_its_name() -> None:
    (part,) = attachments.content("", [("notes.md", "Über\n".encode())])

    assert part == {"type": "text", "text": "notes.md:\n\nÜber\n"}


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.pdf", b"%PDF-1.7 ...", "neither a picture"),
        ("a.bin", b"\x00\x01\x02", "neither a picture"),
        ("a.latin", b"\xff\xfe\xfa", "neither a picture"),
        ("cut.png", picture(size=(60, 60))[:4000], "cannot be read"),
        ("a.txt", b"x" * 500_001, "a text may have 500 kB"),
        ("big.png", picture("PNG", (1400, 1300)), "a picture may have 5.0 MB"),
        ("huge.png", picture(size=(60, 60))[:4000] + bytes(50_000_000), "huge.png has 50.0 MB; a picture may have 5.0 MB"),
    ],
)  # fmt: skip
def test_what_cannot_go_along_is_refused_by_name(name: str, data: bytes, said: str) -> None:
    with pytest.raises(SessionError, match=said) as caught:
        attachments.content("Look.", [(name, data)])
    assert str(caught.value).startswith(name)
    assert "Nothing was sent" in str(caught.value)


def test_a_prompt_takes_ten_files() -> None:
    with pytest.raises(SessionError, match="At most 10 files"):
        attachments.content("", [("a.txt", b"x")] * 11)
