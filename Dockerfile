# docker build -t dsms . && docker run -e DSMS_TOKEN=... -p 7654:7654 -p 8654:8654 -v dsms-data:/data dsms
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY grammar grammar
COPY dsms dsms
COPY server server
COPY clients clients
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home dsms && install -d -m 700 -o dsms -g dsms /data /var/cache/dsms
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels pip install --no-cache-dir "$(echo /wheels/*.whl)[encryption]"
USER dsms
WORKDIR /home/dsms
# Kernels are compiled here, as the user who runs them: the cache must be theirs. On another kind of CPU than that of the
# build they are compiled again at the first start.
ENV NUMBA_CACHE_DIR=/var/cache/dsms PYTHONUNBUFFERED=1
RUN dsms warmup --quiet
VOLUME /data
EXPOSE 7654 8654
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8654/healthz', timeout=2)"]
ENTRYPOINT ["dsms"]
CMD ["serve", "--host", "0.0.0.0", "--port", "7654", "--http-port", "8654", "--data", "/data"]
