"""Live widgets: what they show of a query as it changes, without a browser."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import dsms_client.notebook
from dsms.engine import Engine
from dsms_client.notebook.frames import LINES, Frames, of_engine

SCRIPT = Path(dsms_client.notebook.__file__).parent / "live.js"
DDL = """
CREATE STREAM s (w STRING, v FLOAT, t TIMESTAMP) TIMESTAMP BY t;
CREATE QUERY sums AS SELECT w, SUM(v) AS v FROM s [RANGE 10 s] GROUP BY w;
CREATE QUERY big AS SELECT w, v, t FROM s WHERE v > 1;
CREATE QUERY every AS SELECT COUNT(*) AS n FROM s [RANGE 10 s SLIDE 10 s] HAVING COUNT(*) > 0
"""


@pytest.fixture
def engine():
    made = Engine()
    made.execute(DDL)
    return made


def second(k):
    return k * 1_000_000


def shown(engine, query, conflate=True):
    """Frames of a query, kept up by hand."""
    reader = engine.subscribe(query, conflate=conflate)
    columns = [c.name for c in reader.columns], [c.type for c in reader.columns]
    frames = Frames(*columns, rows=3, keeps=conflate)

    def now():
        for changes in of_engine(query, reader.take_changes()):
            frames.add(changes)
        return frames.frame()

    return now


def test_an_answer_is_shown_as_it_is_and_its_numbers_as_lines(engine):
    now = shown(engine, "sums")
    assert now()["rows"] == []
    engine.ingest("s", [["a", 1.0, second(0)], ["b", 2.0, second(1)], ["a", 3.0, second(2)]])
    first = now()
    engine.heartbeat("s", second(2))
    then = now()
    assert (first["rows"], first["count"], first["at"]) == (
        [["a", "1.0"], ["b", "2.0"]], 2, "1970-01-01 00:00:01",
    )  # a frame  # fmt: skip
    assert sorted(then["rows"]) == [["a", "4.0"], ["b", "2.0"]] and then["numbers"] == [1]
    assert {line["name"]: line["points"] for line in then["lines"]} == {
        "a v": [(second(1), 1.0), (second(2), 4.0)], "b v": [(second(1), 2.0), (second(2), 2.0)],
    }  # lines  # fmt: skip
    engine.heartbeat("s", second(60))
    assert now()["count"] == 0
    engine.execute("DROP QUERY sums")
    assert "dropped" in now()["message"]


def test_of_what_is_only_added_the_newest_rows_are_shown(engine):
    now = shown(engine, "big", conflate=False)
    engine.ingest("s", [["<b>", float(k), second(k)] for k in range(2, 9)])
    frame = now()
    assert [row[1] for row in frame["rows"]] == ["6.0", "7.0", "8.0"] and not frame["kept"]
    assert frame["count"] == 7 and len(frame["lines"][0]["points"]) == 7
    engine.ingest("s", [[f"w{k}", 9.0, second(9)] for k in range(LINES + 5)])
    assert len(now()["lines"]) == LINES


def test_of_a_periodic_query_the_newest_answer_is_shown_and_then_none(engine):
    now = shown(engine, "every")
    engine.ingest("s", [["a", 1.0, second(k)] for k in range(15)])
    assert now()["rows"] == [["10"]]
    engine.heartbeat("s", second(60))
    assert now()["rows"] == []


def test_a_widget_follows_an_engine_and_sums_up_what_comes_too_fast(engine):
    pytest.importorskip("anywidget", reason="the extra `notebook` is not installed")
    from dsms_client.notebook import Live

    async def run():
        live = Live(engine, "sums", seconds=3600)
        frames = []
        live.observe(lambda change: frames.append(change.new), "frame")
        for k in range(5):
            engine.ingest("s", [["a", 1.0, second(k)]])
        waiting = list(frames)
        live._show()  # the time has come
        live.close()
        engine.heartbeat("s", second(5))
        return waiting, frames

    waiting, frames = asyncio.run(run())
    assert waiting == [] and [f["rows"] for f in frames] == [[["a", "4.0"]]]
    assert json.dumps(frames)  # that is how it travels
    alone = Live(engine, "big")  # no loop runs: at once
    engine.ingest("s", [["c", 7.0, second(8)]])
    assert alone.frame["rows"] == [["c", "7.0", "1970-01-01 00:00:08"]]
    engine.execute("DROP QUERY big")
    assert "dropped" in alone.problem and engine.listeners == []
    with pytest.raises(Exception, match="DS401"):
        Live(engine, "nothing")


DOM = """
class Node {
  constructor(name) { this.name = name; this.children = []; this.attributes = {}; this.text = ""; }
  set textContent(text) { this.text = String(text); }
  setAttribute(key, value) { this.attributes[key] = value; }
  appendChild(node) { this.children.push(node); }
  replaceChildren(...nodes) { this.children = nodes; }
  get all() { return [this, ...this.children.flatMap((child) => child.all)]; }
}
globalThis.document = { createElement: (n) => new Node(n), createElementNS: (_, n) => new Node(n) };
const { default: widget } = await import(process.argv[1]);
const frame = JSON.parse(process.argv[2]), heard = {};
const model = {
  get: (k) => ({ frame, query: "q", problem: "over" })[k],
  on: (k, f) => { heard[k] = f; },
  off: (k) => { delete heard[k]; },
};
const el = new Node("div");
const leave = widget.render({ model, el });
heard["change:frame"]();
const found = (name) => el.all.filter((node) => node.name === name);
leave();
console.log(JSON.stringify({
  texts: found("td").map((n) => n.text),
  lines: found("polyline").map((n) => n.attributes.points),
  notes: el.children.map((n) => n.text),
  left: Object.keys(heard),
}));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node to run the script")
def test_the_script_draws_a_frame(engine, tmp_path):
    now = shown(engine, "sums")
    engine.ingest("s", [["<b>", float(k), second(k)] for k in range(4)])
    now()
    engine.heartbeat("s", second(3))
    place = tmp_path / "live.mjs"
    shutil.copy(SCRIPT, place)
    command = ["node", "--input-type=module", "-e", DOM, str(place), json.dumps(now())]
    out = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    assert out["texts"] == ["<b>", "6.0"] and out["left"] == []
    assert out["notes"] == ["q: 1 rows, as of 1970-01-01 00:00:03", "", "", "over"]
    assert out["lines"] == ["6.0,134.0 594.0,6.0"]
    assert "http" not in SCRIPT.read_text().replace("http://www.w3.org/2000/svg", "")
