# syntax=docker/dockerfile:1
# One image for all processes: the command is the role, see compose.yaml.
FROM python:3.11-slim-bookworm AS build
WORKDIR /app
COPY requirements-login.txt requirements-otel.txt requirements-s3.txt requirements-docs.txt ./
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements-login.txt -r requirements-otel.txt -r requirements-s3.txt \
    && python -m venv /docs && /docs/bin/pip install --no-cache-dir --require-hashes -r requirements-docs.txt
COPY . .
RUN /docs/bin/sphinx-build --quiet --doctree-dir /tmp/doctrees docs site \
    && COMMONHOLD_DATA_DIR=/tmp/data /venv/bin/python manage.py collectstatic --noinput \
    && /venv/bin/python -m compileall -q project state_admin

FROM python:3.11-slim-bookworm
RUN useradd --uid 10001 --no-create-home commonhold && install -d -o commonhold -m 0700 /data
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
# HOST: all addresses, so that the port can be published. COMMONHOLD_DATA_DIR holds the secret key, if SECRET_KEY is not
# set, and the schedule of beat; nothing else is written.
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOST=0.0.0.0 COMMONHOLD_DATA_DIR=/data
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('PORT', '8000') + '/healthz', timeout=4)"]
ENTRYPOINT ["python", "manage.py"]
CMD ["web"]
