"""What is shipped to run a server: the containers of examples/compose, and a unit of systemd."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from dsms.engine import Engine
from dsms_client.cli import main
from dsms_server import config

ROOT = Path(__file__).parents[2]
COMPOSE, SERVICE = ROOT / "examples" / "compose", ROOT / "examples" / "service"
DASHBOARD = COMPOSE / "grafana" / "dashboards" / "dsms.json"
NAME = re.compile(r"\bdsms_\w+")


def test_containers_have_images_and_the_files_that_they_mount():
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
    assert {"dsms", "mosquitto", "sensors", "feed", "prometheus", "grafana"} == set(services)
    for name, service in services.items():
        image = re.fullmatch(r"[\w./-]+:v?[\d.]+", service.get("image", ""))  # with a version
        assert ("build" in service) != bool(image), name
        waits_for = service.get("depends_on", [])
        assert set(waits_for) <= set(services)
        mounts = [volume.split(":")[0] for volume in service.get("volumes", [])]
        assert all((COMPOSE / m).exists() for m in mounts if m.startswith(".")), name
        ports = service.get("ports", [])
        assert all(port.startswith("127.0.0.1:") for port in ports)
    for path in COMPOSE.rglob("*.y*ml"):
        assert yaml.safe_load(path.read_text())
    feed = services["feed"]["environment"]
    assert feed["DSMS_HOST"] in services and feed["MQTT_HOST"] in services
    (job,) = yaml.safe_load((COMPOSE / "prometheus.yml").read_text())["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    assert (
        target.split(":")[0] in services
        and f'"{target.split(":")[1]}"' in (ROOT / "Dockerfile").read_text()
    )


def test_the_dashboard_draws_metrics_that_there_are(serve):
    engine = Engine()
    engine.execute((COMPOSE / "declare.cql").read_text())
    server = serve(engine, http_port=0)
    with server.peer() as peer:
        peer.ask("execute", sql="NONSENSE")  # errors by code
    with urlopen(f"http://127.0.0.1:{server.server.http_port}/metrics") as answer:
        there = set(NAME.findall(answer.read().decode()))
    board = json.loads(DASHBOARD.read_text())
    drawn = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked = {name for text in drawn for name in NAME.findall(text)}
    assert len(asked) > 15 and asked - there == set()
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {"prometheus"}
    places = [tuple(panel["gridPos"].values()) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_what_sensors_publish_is_what_the_feed_declares(tmp_path, serve, monkeypatch):
    """With commands of Mosquitto that write to a file, and read it."""
    said = tmp_path / "said"
    for name, does in (("pub", f'shift 7; echo "$1" >> {said}'), ("sub", f"cat {said}")):
        command = tmp_path / f"mosquitto_{name}"
        command.write_text(f"#!/bin/sh\n{does}\n")
        command.chmod(0o755)
    (tmp_path / "dsms").write_text(f'#!/bin/sh\nexec {sys.executable} -m dsms_client "$@"\n')
    (tmp_path / "dsms").chmod(0o755)
    engine = Engine()
    server = serve(engine)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DSMS_PORT", str(server.port))
    more = {"ROUNDS": "2", "PAUSE": "0", "DECLARE": str(COMPOSE / "declare.cql"), "MESSAGES": "24"}
    for script in ("sensors.sh", "feed.sh"):
        words = ["sh", COMPOSE / script]
        done = subprocess.run(words, env=os.environ | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    (status,) = engine.execute("SHOW STREAMS WHERE stream = 'readings'")[0].data.to_pylist()
    assert (status["accepted"], status["refused"]) == (24, 0)
    assert main(["shell", "-f", str(COMPOSE / "declare.cql")]) == 0  # again, it changes nothing


def test_the_unit_of_systemd(tmp_path):
    text = (SERVICE / "dsms.service").read_text()
    (words,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    assert words.startswith("/opt/dsms/bin/dsms serve --config /etc/dsms/dsms.toml ")
    made = config.build(config.from_file(str(SERVICE / "dsms.toml")), {"token": "t"})
    assert (made.host, made.http_port) == ("0.0.0.0", 8654)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze checks the rest")
    unit = tmp_path / "dsms.service"
    unit.write_text(text.replace("/opt/dsms/bin/dsms", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
