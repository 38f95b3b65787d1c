"""Private keys in a text: whole blocks whatever stands before each line, cut ones, and bodies without a block.

A block that was printed with line numbers, quoted, or shown by ``diff`` is one; so is one without its last lines (cut
off) or its first. Every text takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Place = tuple[int, int]
HINTS = ("private key", "openvpn static key", "putty-user-key-file", "private-mac")
BARE_HINTS = ("IBAAK", "IBADANBgkqhkiG9w0B", "MIGHAgEAMBMGByqGSM49AgEG", "MHcCAQEEI", "MC4CAQAwBQYDK", "b3BlbnNzaC1r")
_MOST = 20_000  # characters of a block; an RSA key of 16,384 bits has 13,000
_KIND = r"(?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V\d)"
_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_KIND} ?-{{4,5}}|PuTTY-User-Key-File-\d: ?[^\r\n]{{0,60}}", re.IGNORECASE)
_END = re.compile(rf"-{{4,5}} ?END {_KIND} ?-{{4,5}}|Private-MAC: ?[0-9a-f]{{32,64}}", re.IGNORECASE)
# The first bytes of a key without its block: RSA (PKCS #1 and #8), elliptic curves, Ed25519, OpenSSH.
_BARE = re.compile(
    r"(?<![A-Za-z0-9+/])(?:MII[A-Za-z0-9+/]{3}IBA(?:AK[BC]|DANBgkqhkiG9w0B)|MIGHAgEAMBMGByqGSM49AgEG|MHcCAQEEI"
    r"|MC4CAQAwBQYDK2Vw|b3BlbnNzaC1rZXktdjE)(?=[A-Za-z0-9+/]{16})"
)
# PuTTY has its public part in front, which ends as a body does.
_GOES_ON = re.compile(r"[^\r\n\w]{0,20}[\r\n]{1,2}[^\r\n]{0,20}?(?:Private-Lines|Key-Derivation|Argon2-\w{1,16}):")
# A line of a body, behind what an editor, a diff, a quotation or a program puts around it.
_LINE = re.compile(
    r"(?:[\r\n]{1,2}[ \t>|]{0,12}[\w./-]{1,80}[:-]\d{1,6}[:-])?"  # grep
    r"(?:[ \t>|+*#/:→│┃\d.,;\"'`()\[\]-]|[\r\n]){0,40}"
    r"(?:(?P<head>(?:Proc-Type|DEK-Info|Comment|Version|Encryption|Public-Lines|Private-Lines|Key-Derivation"
    r"|Argon2-\w{1,16}):[^\r\n]{0,200})"
    r"|(?P<whole>[A-Za-z0-9+/]{16,512}={0,3})"
    r"|[A-Za-z0-9+/]{1,63}={0,3}(?=[ \t\"'`,;)+]{0,8}(?:[\r\n]|\Z)))"
)


def places(text: str) -> list[Place]:
    """Where private keys stand in ``text``: whole blocks, whatever stands before each line, and what a cut left."""
    ends = [match.span() for match in _END.finditer(text)]
    blocks: list[Place] = []
    done = at = 0
    for begin in _BEGIN.finditer(text):
        if begin.start() < done:
            continue
        while at < len(ends) and ends[at][0] < begin.end():
            at += 1
        is_whole = at < len(ends) and ends[at][1] - begin.start() <= _MOST
        done = ends[at][1] if is_whole else _body_end(text, begin.end())
        blocks.append((begin.start(), done))
    cut = _without_begin(text, ends, blocks)
    return [*blocks, *cut]


def bare(text: str) -> list[Place]:
    """Where private keys stand in ``text`` without the lines that begin and end a block."""
    return [(match.start(), _body_end(text, match.start())) for match in _BARE.finditer(text)]


def _without_begin(text: str, ends: Sequence[Place], blocks: Sequence[Place]) -> Iterator[Place]:
    """The bodies whose first lines were cut off: what of a key stands before each end that no block has."""
    floor, has_begin = 0, {last for _, last in blocks}
    for start, stop in ends:
        if stop not in has_begin:
            begin = start
            while begin > floor:
                before = text.rfind("\n", floor, begin - 1) + 1 or floor
                line = _LINE.match(text, before, begin)
                if line is None or text[line.end() : begin].strip(" \t\r\n\"'`,;)+"):
                    break
                begin = before
            yield begin, stop
        floor = stop


def _body_end(text: str, start: int) -> int:
    """Where the lines of a body that begin at ``start`` end; ``start`` if there are none."""
    end, limit, was_whole = start, min(len(text), start + _MOST), False
    while (line := _LINE.match(text, end, limit)) is not None and line.end() > end:
        is_short = line["whole"] is None and line["head"] is None
        if is_short and was_whole and not _GOES_ON.match(text, line.end()):  # the last line
            return line.end()
        was_whole = line["head"] is None and (was_whole or not is_short)
        end = line.end()
    return end
