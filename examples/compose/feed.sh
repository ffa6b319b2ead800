#!/bin/sh
# Declares what is not there yet, then sends every message on: a line of JSON is a row.
set -e
dsms shell -f "${DECLARE:-/demo/declare.cql}"
mosquitto_sub -h "${MQTT_HOST:-localhost}" -p "${MQTT_PORT:-1883}" -t 'sensors/#' ${MESSAGES:+-C "$MESSAGES"} |
    dsms load - --stream readings --format jsonl --quiet --max-rejects 1000000
