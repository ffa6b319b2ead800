#!/bin/sh
# Twelve sensors publish a reading each, once a second; ROUNDS ends it, for tests.
round=0
while [ "$round" -lt "${ROUNDS:-2147483647}" ]; do
    for sensor in 1 2 3 4 5 6 7 8 9 10 11 12; do
        at=$(date -u +%Y-%m-%dT%H:%M:%SZ)
        celsius=$(awk -v n="$round" -v s="$sensor" 'BEGIN { printf "%.2f", 20 + s / 4 + 5 * sin((n + 9 * s) / 60) }')
        mosquitto_pub -h "${MQTT_HOST:-localhost}" -p "${MQTT_PORT:-1883}" -t "sensors/$sensor" \
            -m "{\"sensor\": $sensor, \"at\": \"$at\", \"celsius\": $celsius}" || exit 1
    done
    round=$((round + 1))
    sleep "${PAUSE:-1}"
done
