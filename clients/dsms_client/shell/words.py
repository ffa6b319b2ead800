"""Words that completion offers: those of the language, options and settings, as the server knows
them.

The client imports nothing of the engine; a test holds these lists against the grammar and the
engine's tables.  (Functions and names are asked of the server.)
"""

from __future__ import annotations

_TEXT = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET DISTINCT AS AND OR NOT IN EXISTS BETWEEN LIKE ILIKE ESCAPE IS NULL CASE
WHEN THEN ELSE END CAST JOIN INNER LEFT RIGHT FULL OUTER CROSS ON USING UNION INTERSECT EXCEPT ALL CREATE STREAM TABLE
QUERY AGGREGATE FUNCTION RETURNS DROP IF SHOW STREAMS TABLES QUERIES FUNCTIONS AGGREGATES WINDOWS SHARING ARCHIVES SETTINGS SESSIONS MEMORY SOURCE SOURCES SINK SINKS DESCRIBE
EXPLAIN ANALYZE FORMAT
HEARTBEAT INSERT INTO VALUES UPDATE SET DELETE AT LOOKUP TIMESTAMP UNIT SLACK LATE MAX FUTURE IDLE TIMEOUT SUBWINDOW RETAIN
INDEX ARCHIVE CLUSTER EVERY FOR CANCEL CLOSE SESSION CLOCK CONFIDENTIAL CASCADE PAUSE RESUME RENAME COMMENT REPLACE PUNCTUATE UPTO ASOF WITHIN MATCH SKIP PAST PER UNKNOWN UNNEST LATERAL ORDINALITY
USER USERS ROLE GRANTS QUOTAS PASSWORD TOKEN ALTER ADD CONFLICT DO NOTHING COPY FILE REOPEN COLUMN DEFAULT GRANT REVOKE SUBSCRIBE ADMIN MASK
WITH PRIMARY KEY NON RETROACTIVE RANGE ROWS SLIDE PARTITION NOW UNBOUNDED UNTIL VALID AGO SINCE WINDOW INTERNAL ALIGN TO TIME
ZONE ISTREAM DSTREAM RSTREAM WSTREAM ISTREAM-RESTORE RSTREAM-RESTORE FILTER OVER PRECEDING FOLLOWING CURRENT ROW QUALIFY ASC DESC NULLS FIRST LAST TRUE FALSE DATE
BOOL INT FLOAT DECIMAL STRING BYTES INTERVAL UUID LIST STRUCT SECONDS MINUTES HOURS DAYS WEEKS MONTHS YEARS
"""  # noqa: E501
KEYWORDS = list(dict.fromkeys(_TEXT.split()))

SETTINGS: dict[str, tuple[str, ...]] = {
    "query_scheduler": ("none", "aggressive", "conservative", "hybrid"),
    "late_sharing": ("none", "late", "'late-pending'"),
    "statement_timeout": ("'30 s'", "0"),
    "transaction_scheduler": ("serial", "ws", "lws", "ttu"),
}
OPTIONS: dict[str, tuple[str, ...]] = {
    "boundaries": ("every", "elastic"),
    "path": ("auto", "'is'", "ws", "ss", "iss"),
    "synopsis": ("auto", "running", "interval", "landmark", "basic", "collective", "own", "none"),
    "approximate": (),
    "sample": ("none", "scale"),
    "shed": ("none", "random", "scale"),
    "priority": (),
    "strategy": ("upa", "direct", "nt"),
    "on_error": ("null", "stop"),
    "negation": ("auto", "up", "down"),
    "joins": ("auto", "tree", "pipeline", "adaptive"),
    "migration": ("nothing", "all", "partial"),
    "tuning": ("hybrid", "continuous", "periodic", "triggered"),
    "distinct": ("auto", "input-storing", "delta-star", "counting"),
    "optimize": ("TRUE", "FALSE"),
    "partitions": (),
    "replan": ("auto", "never"),
    "replan_after": (),
    "result_log": (),
    "max_state": (),
    "over": ("stop", "shed"),
    "complete": ("any", "required"),
    "archive": ("auto", "duckdb", "spark"),
    "description": (),
}
