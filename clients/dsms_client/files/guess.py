"""What a file holds, by how it begins; and how the values of its lines are divided."""

from __future__ import annotations

import re

from dsms_client.files.options import BOM
from dsms_client.files.unreadable import ARROW

# Apache's common and combined log formats (mod_log_config); quotes inside are written \"
APACHE = (  # the quotes are part of it
    r'^(?P<host>\S+) (?P<ident>\S+) (?P<user>\S+) \[(?P<time>[^\]]+)\] '
    r'"(?P<request>(?:[^"\\]|\\.)*)" (?P<status>[0-9]{3}|-) (?P<bytes>[0-9]+|-)'
    r'(?: "(?P<referrer>(?:[^"\\]|\\.)*)" "(?P<agent>(?:[^"\\]|\\.)*)")?\r?$'
)  # text with both kinds of quotes  # fmt: skip
DELIMITERS = "\t,;| "
LINES = 40  # that are looked at


def kind_of(head: bytes) -> str:
    """One of KINDS: what begins so."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(ARROW):
        return "arrow"
    text = head.removeprefix(BOM).decode(errors="replace").lstrip()
    if text.startswith("#separator "):
        return "zeek"
    if text.startswith("{"):
        return "jsonl"
    if re.match(r"\[\s*[{\]]", text):
        return "json"
    first = text.partition("\n")[0]
    return "apache" if re.match(APACHE, first) else "csv"


def delimiter_of(head: bytes) -> str:
    """What divides the values of most lines into as many; a comma where nothing does."""
    lines = [b.decode(errors="replace") for b in head.removeprefix(BOM).splitlines() if b]
    lines = lines[: max(1, min(LINES, len(lines) - 1))]  # the last one may be cut off
    if not lines:
        return ","
    best, most = ",", 0.0
    for delimiter in DELIMITERS:
        counts = [re.sub(r'"[^"]*"', "", line).count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count)
        share = counts.count(usual) / len(counts) if usual else 0.0
        if share > most + 0.05:
            best, most = delimiter, share
    return best
