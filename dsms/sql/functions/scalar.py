"""Numbers and text: exact meaning of each function.  Text counts in code points, positions from
1."""

from __future__ import annotations

from dsms.sql.functions.lists import LENGTH
from dsms.sql.functions.rules import (
    CONCAT_WS,
    ROUND_DECIMAL,
    SAME_DECIMAL,
    SIGN_DECIMAL,
    SOME_TO_INT,
    WHOLE_DECIMAL,
)
from dsms.sql.signatures import Function, Match, Overload, Types, bends, texts
from dsms.sql.types import INT, STRING, Type, list_of

_WHOLE = texts("INT -> INT", WHOLE_DECIMAL, "FLOAT -> FLOAT")


def _float(name: str, doc: str, *aliases: str) -> Function:
    return Function(name, doc, texts("FLOAT -> FLOAT"), aliases=aliases)


NUMBERS = (
    Function(
        "abs",
        "|x|; the smallest INT has none: an error of that row.",
        texts("INT -> INT", SAME_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INTERVAL"),
    ),
    Function(
        "sign",
        "-1, 0 or 1; of a NaN, NaN.",
        texts("INT -> INT", SIGN_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INT"),
    ),
    Function("ceil", "The smallest whole number >= x.", _WHOLE, aliases=("ceiling",)),
    Function("floor", "The largest whole number <= x.", _WHOLE),
    Function("trunc", "x without what stands after the point.", _WHOLE, aliases=("truncate",)),
    Function(
        "round",
        "The nearest whole number, ties away from zero; round(x, n): to n digits after the point "
        "(n < 0: before it). A FLOAT counts as its shortest decimal text, as in CAST to DECIMAL: "
        "round(1.325, 2) is 1.33; NaN and infinities stay, as does a FLOAT whose rounded value "
        "would be infinite.",
        (*_WHOLE, *texts("INT, INT -> INT", ROUND_DECIMAL, "FLOAT, INT -> FLOAT")),
    ),
    _float("sqrt", "Square root; of a negative number an error of that row."),
    _float("exp", "e to the power x."),
    _float("ln", "Natural logarithm; of zero or less an error of that row."),
    _float("log10", "Logarithm to base 10; of zero or less an error of that row.", "log"),
    _float("log2", "Logarithm to base 2; of zero or less an error of that row."),
    Function(
        "power",
        "x to the power y, as C's pow; a negative x to a fractional y, and zero to a negative y, "
        "are errors of that row.",
        texts("FLOAT, FLOAT -> FLOAT"),
        aliases=("pow",),
    ),
    _float("sin", "Sine of an angle in radians; of an infinity an error of that row."),
    _float("cos", "Cosine of an angle in radians; of an infinity an error of that row."),
    _float("tan", "Tangent of an angle in radians; of an infinity an error of that row."),
    _float("asin", "Arc sine; outside -1..1 an error of that row."),
    _float("acos", "Arc cosine; outside -1..1 an error of that row."),
    _float("atan", "Arc tangent."),
    Function(
        "atan2", "Angle of the point (y, x), args y, x, in radians.", texts("FLOAT, FLOAT -> FLOAT")
    ),
    _float("radians", "x * (pi / 180)."),
    _float("degrees", "x * (180 / pi)."),
    Function(
        "haversine",
        "haversine(lat1, lon1, lat2, lon2): metres from point to point, given in degrees, along "
        "the surface of a sphere with the Earth's mean radius, 6371008.8 m: the Earth is flatter, "
        "so up to 0.6 % off. A latitude beyond 90 degrees, or a longitude beyond 360, is an error "
        "of that row.",
        texts("FLOAT, FLOAT, FLOAT, FLOAT -> FLOAT"),
    ),
    Function("pi", "3.141592653589793.", texts("-> FLOAT")),
    Function("is_nan", "Whether x is NaN.", texts("FLOAT -> BOOL"), aliases=("isnan",)),
)


def _listed(*wanted: Type) -> Overload:
    """A function that gives a list of texts."""

    def match(args: Types) -> Match | None:
        cost = bends(args, wanted) if len(args) == len(wanted) else None
        return None if cost is None else Match(wanted, list_of(STRING), cost)

    return Overload(f"({', '.join(map(str, wanted))}) -> LIST(STRING)", match)


_CHARS = "given characters (default: the space)"

TEXT = (
    Function(
        "lower",
        "In lower case by Unicode's simple mapping, each code point for itself (İ gives i).",
        texts("STRING -> STRING"),
    ),
    Function(
        "upper",
        "In upper case by Unicode's simple mapping, each code point for itself (ß gives ẞ).",
        texts("STRING -> STRING"),
    ),
    Function("trim", f"Without the {_CHARS} at both ends.",
             texts("STRING -> STRING", "STRING, STRING -> STRING")),
    Function("ltrim", f"Without the {_CHARS} at the start.",
             texts("STRING -> STRING", "STRING, STRING -> STRING")),
    Function("rtrim", f"Without the {_CHARS} at the end.",
             texts("STRING -> STRING", "STRING, STRING -> STRING")),
    Function(
        "length",
        "Number of code points; of BYTES, number of bytes; of a list, number of items.",
        texts("STRING -> INT", "BYTES -> INT", LENGTH),
        aliases=("char_length", "character_length", "len"),
    ),
    Function("octet_length", "Number of bytes (text in UTF-8).",
             texts("STRING -> INT", "BYTES -> INT")),
    Function(
        "substr",
        "substr(s, start, n): the code points at positions p with start <= p < start + n that "
        "exist (start may be 0 or negative: those positions hold nothing); without n to the end; "
        "n < 0 as 0.",
        texts("STRING, INT -> STRING", "STRING, INT, INT -> STRING"),
        aliases=("substring",),
    ),
    Function(
        "left",
        "The first n code points; n < 0: all but the last -n.",
        texts("STRING, INT -> STRING"),
    ),
    Function(
        "right",
        "The last n code points; n < 0: all but the first -n.",
        texts("STRING, INT -> STRING"),
    ),
    Function(
        "replace",
        "replace(s, a, b): every a in s, found from the left without overlap, replaced by b; an "
        "empty a is nowhere.",
        texts("STRING, STRING, STRING -> STRING"),
    ),
    Function(
        "position",
        "position(part, s): where part first begins in s, 0 if nowhere, 1 if "
        "part is empty.",
        texts("STRING, STRING -> INT"),
    ),
    Function("strpos", "strpos(s, part): position(part, s).", texts("STRING, STRING -> INT"),
             aliases=("instr",)),
    Function("contains", "contains(s, part): whether part is in s.",
             texts("STRING, STRING -> BOOL")),
    Function("starts_with", "starts_with(s, part): whether s begins with part.",
             texts("STRING, STRING -> BOOL")),
    Function("ends_with", "ends_with(s, part): whether s ends with part.",
             texts("STRING, STRING -> BOOL")),
    Function(
        "like",
        "s LIKE pattern: % stands for any run of code points (line ends too), _ for one, all else "
        "for itself. params (escape,): a code point that makes the next one stand for itself; "
        "params (): none. A pattern that ends in the escape is an error of that row.",
        texts("STRING, STRING -> BOOL"),
    ),
    Function(
        "concat_ws",
        "concat_ws(separator, a, b, ...): those that are not NULL, as text, with the separator "
        "between.",
        (CONCAT_WS,),
        nulls="NULL if the separator is NULL; skips others",
    ),
    Function(
        "lpad",
        "lpad(s, n, fill): s after as many code points of fill, repeated from its start, as make "
        "n in all (default fill: the space); a longer s is cut to its first n; n < 0 as 0; n "
        "above 1000000 is an error of that row.",
        texts("STRING, INT -> STRING", "STRING, INT, STRING -> STRING"),
    ),
    Function(
        "rpad",
        "As lpad, with the fill after s.",
        texts("STRING, INT -> STRING", "STRING, INT, STRING -> STRING"),
    ),
    Function(
        "repeat",
        "s n times; n < 0 as 0; a result of more than 1000000 bytes is an error of that row.",
        texts("STRING, INT -> STRING"),
    ),
    Function("reverse", "The code points in reverse order.", texts("STRING -> STRING")),
    Function(
        "split_part",
        "split_part(s, separator, n): part n of s cut at every separator, n < 0 from the end; '' "
        "if there is none; an empty separator cuts nothing; n = 0 is an error of that row.",
        texts("STRING, STRING, INT -> STRING"),
    ),
    Function(
        "regexp_matches",
        "Whether the regular expression (RE2 syntax, constant) matches somewhere in s.",
        texts("STRING, STRING -> BOOL"),
        constants={1: "regex"},
    ),
    Function(
        "regexp_replace",
        "regexp_replace(s, regex, to): every match replaced by the constant text `to`, where \\1 "
        "is the first group.",
        texts("STRING, STRING, STRING -> STRING"),
        constants={1: "regex", 2: "text"},
    ),
    Function(
        "regexp_extract",
        "regexp_extract(s, regex[, group]): the first match, or that group of it (constant, from "
        "1; 0, the whole, unsaid); NULL where nothing matches; '' for a group that takes no part "
        "in the match.",
        texts("STRING, STRING -> STRING", "STRING, STRING, INT -> STRING"),
        constants={1: "regex"},
    ),
    Function(
        "regexp_extract_all",
        "regexp_extract_all(s, regex[, group]): a list of what regexp_extract gives of each match "
        "that regexp_replace would replace; [] where there is none. More than 65536 matches are "
        "an error of that row.",
        (_listed(STRING, STRING), _listed(STRING, STRING, INT)),
        constants={1: "regex"},
    ),
    Function(
        "json_value",
        "json_value(j, path): the text, number (with the digits that stand there), true or false "
        "at the constant path, such as $.a.\"b c\"[0], of JSON in a text, as text; json_value(j, "
        "path AS type): TRY_CAST of that. NULL where there is none, for null, an object or an "
        "array, and where j is no JSON, or nested deeper than 100. Of equal keys the last counts. "
        "More than 1048576 bytes are an error of that row.",
        texts("STRING, STRING -> STRING"),
        constants={1: "path"},
    ),
    Function(
        "json_items",
        "json_items(j, path): the items of the array at the path as a list of texts: what strings "
        "say, and all else as it stands there; NULL for null. NULL where there is no array, or one "
        "of more than 65536 items. As json_value.",
        (_listed(STRING, STRING),),
        constants={1: "path"},
    ),
    Function(
        "json_exists",
        "Whether something is at the path (null too); false where j is no JSON. As json_value.",
        texts("STRING, STRING -> BOOL"),
        constants={1: "path"},
    ),
    Function("hex", "Two digits 0-9A-F per byte (text in UTF-8).",
             texts("BYTES -> STRING", "STRING -> STRING"),
             aliases=("to_hex",)),
    Function(
        "unhex",
        "The bytes that pairs of hexadecimal digits, of either case, stand for; other text is an "
        "error of that row.",
        texts("STRING -> BYTES"),
        aliases=("from_hex",),
    ),
    Function("md5", "MD5 digest, as 32 digits 0-9a-f (text in UTF-8).",
             texts("STRING -> STRING", "BYTES -> STRING")),
    Function(
        "hash",
        "64 bits of the values in their order, the same everywhere and in every version. Numbers "
        "are hashed by value (1, 1.0 and DECIMAL 1.00 alike), in lists too; NULL is a value.",
        (SOME_TO_INT,),
        nulls="never NULL",
    ),
    Function("sha256", "SHA-256 digest, as 64 digits 0-9a-f.",
             texts("STRING -> STRING", "BYTES -> STRING")),
)  # a table  # fmt: skip
