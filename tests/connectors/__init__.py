"""Sources and sinks: what several tests of them need."""
