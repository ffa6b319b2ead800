"""The real psql: what people type, and what it asks of the catalog for its commands."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from dsms.engine import Engine

PSQL = shutil.which("psql")
pytestmark = pytest.mark.skipif(PSQL is None, reason="psql is not installed")
DECLARED = """
CREATE STREAM s (k STRING, v INT NOT NULL, d DECIMAL(10,2), t TIMESTAMP, l LIST(INT))
    TIMESTAMP BY t;
CREATE TABLE r (id INT PRIMARY KEY, x STRING);
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY k;
CREATE FUNCTION twice(x INT) AS x * 2;
COMMENT ON TABLE r IS 'what there is';
INSERT INTO r VALUES (1, 'one'), (2, NULL);
"""


@pytest.fixture(scope="module")
def psql():
    from harness import Running

    engine = Engine()
    engine.execute(DECLARED)
    engine.ingest("s", {"k": ["a"], "v": [1], "d": ["1.50"], "t": [0], "l": [[1, 2]]})
    engine.heartbeat("s", 1)
    running = Running(engine, postgres_port=0)

    def run(*commands: str, options: tuple[str, ...] = ("-A", "-t")) -> str:
        url = f"host=127.0.0.1 port={running.server.postgres_port} user=me dbname=dsms"
        asked = [part for command in commands for part in ("-c", command)]
        done = subprocess.run(
            [str(PSQL), "-X", *options, url, *asked],
            capture_output=True,
            text=True,
            env={**os.environ, "PGCONNECT_TIMEOUT": "60", "PAGER": "cat"},
        )
        return done.stdout + done.stderr

    yield run
    running.stop()


def test_queries(psql):
    assert psql("SELECT 1", "SELECT k, v, d, t, l FROM s") == (
        "1\na|1|1.50|1970-01-01 00:00:00+00|{1,2}\n"
    )
    told = psql("SELECT v,\n nothing FROM s")
    assert "ERROR:  DS201" in told and "LINE 2:  nothing FROM s\n         ^" in told
    assert "25006" in psql("\\set VERBOSITY verbose", "DROP STREAM s")


def test_lists_of_what_there_is(psql):
    assert psql("\\d") == "public|q|view|dsms\npublic|r|table|dsms\npublic|s|table|dsms\n"
    assert psql("\\dt") == "public|r|table|dsms\npublic|s|table|dsms\n"
    assert psql("\\dv") == "public|q|view|dsms\n"
    assert psql("\\dn") == "public|dsms\n"
    assert psql("\\df") == "public|twice|bigint|x INT|func\n"
    assert psql("\\l").startswith("dsms|dsms|UTF8|C|C|")
    assert "what there is" in psql("\\dt+ r")
    assert "public|r_pkey|index|dsms|r" in psql("\\di")
    assert psql("\\du").startswith("dsms|")


def test_one_of_them(psql):
    shown = psql("\\d s", options=())
    assert 'Table "public.s"' in shown
    lines = [[part.strip() for part in line.split("|")] for line in shown.splitlines()[3:8]]
    assert [line[:2] for line in lines] == [
        ["k", "text"],
        ["v", "bigint"],
        ["d", "numeric(10,2)"],
        ["t", "timestamp with time zone"],
        ["l", "bigint[]"],
    ]
    assert lines[1][3] == "not null"
    assert '"r_pkey" PRIMARY KEY, btree (id)' in psql("\\d r", options=())
    assert 'View "public.q"' in psql("\\d+ q", options=())
    assert "Did not find any relation" in psql("\\d nobody")


@pytest.mark.parametrize(
    "command",
    [
        "\\d+ s",
        "\\d r*",
        "\\dp",
        "\\dT",
        "\\dx",
        "\\dy",
        "\\dRp",
        "\\drds",
        "\\des",
        "\\db",
        "\\dC",
        "\\dc",
        "\\dD",
        "\\ddp",
        "\\dew",
        "\\dF",
        "\\dO",
        "\\do",
        "\\dP",
        "\\ds",
        "\\dm",
        "\\dE",
        "\\dX",
        "\\sf twice",
        "\\sv q",
        "\\dconfig search_path",
    ],
)
def test_other_commands_end_without_an_error(psql, command):
    assert "ERROR" not in psql(command)


def test_variables_transactions_and_cursors(psql):
    assert psql("\\set FETCH_COUNT 1", "SELECT id FROM r ORDER BY id") == "1\n2\n"
    assert psql("BEGIN", "SELECT 1", "COMMIT", "\\conninfo").startswith("BEGIN\n1\nCOMMIT\n")
    assert "this port has no COPY" in psql("\\copy r TO STDOUT")
    assert psql("SELECT x FROM r WHERE id = 2") == "\n"
