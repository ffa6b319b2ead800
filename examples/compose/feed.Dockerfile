# dsms, and the clients of MQTT
FROM dsms
USER root
RUN apt-get update && apt-get install -y --no-install-recommends mosquitto-clients && rm -rf /var/lib/apt/lists/*
USER dsms
