"""An engine inside of a program: who is slow is told as it happens.

python examples/embedded.py
"""

from __future__ import annotations

from datetime import datetime, timedelta

import dsms
from dsms.api import Changes, Rows

START = datetime(2024, 5, 1, 12)
DECLARED = """
CREATE STREAM pings (host STRING, ms FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE QUERY slow AS
    SELECT host, AVG(ms) AS ms FROM pings [RANGE :width] GROUP BY host HAVING AVG(ms) > :most
"""


def watch(engine: dsms.Engine) -> list[str]:
    """Lines that say who is slow, and who is not any more, written as time goes on."""
    lines: list[str] = []

    @engine.on("slow")
    def told(changes: Changes) -> None:
        for row in changes.arrow().to_pylist():
            verb = "is slow" if row["$sign"] > 0 else "was slow"
            lines.append(f"{row['$at']:%H:%M:%S} {row['host']} {verb}: {row['ms']:.1f} ms")

    return lines


def asked(engine: dsms.Engine, least: float) -> list[str]:
    """The hosts whose pings of the last minute took at least so long."""
    sql = "SELECT DISTINCT host FROM pings [RANGE 1 min] WHERE ms >= ? ORDER BY host"
    (answer,) = engine.execute(sql, [least])
    assert isinstance(answer, Rows)
    hosts: list[str] = answer.arrow().column("host").to_pylist()
    return hosts


def main() -> None:
    engine = dsms.Engine()
    engine.execute(DECLARED, {"width": timedelta(seconds=10), "most": 50.0})
    lines = watch(engine)
    for second, ms in enumerate((20.0, 90.0, 110.0, 30.0)):
        at = START + timedelta(seconds=4 * second)
        engine.ingest("pings", [["alpha", ms, at], ["beta", 10.0, at]])
    engine.heartbeat("pings", START + timedelta(seconds=40))
    print("\n".join(lines))
    print("60 ms or more:", ", ".join(asked(engine, 60)))
    engine.close()


if __name__ == "__main__":
    main()
