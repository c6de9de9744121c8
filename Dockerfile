# One image for every stage; the command says which: docker run smidgen worker aggregate

FROM python:3.11.13-slim-bookworm AS build
WORKDIR /src

# uv installs the locked subset that runs in production (no extras) and checks its hashes.
COPY requirements.lock ./
RUN sed -n '/^uv==/,/[^\\]$/p' requirements.lock > uv.lock \
 && pip install --no-cache-dir --require-hashes --only-binary :all: -r uv.lock \
 && python -m venv --without-pip /opt/smidgen

COPY pyproject.toml README.md LICENSE topics.yaml ./
COPY pipeline pipeline
COPY agents agents
COPY loadgen loadgen
RUN uv pip install --no-cache --python /opt/smidgen/bin/python \
    --constraints requirements.lock --build-constraints requirements.lock .

FROM python:3.11.13-slim-bookworm
COPY --from=build /opt/smidgen /opt/smidgen
RUN useradd --system --create-home smidgen
USER smidgen
WORKDIR /home/smidgen
ENV PATH=/opt/smidgen/bin:$PATH PYTHONUNBUFFERED=1 SMIDGEN_HEALTH=127.0.0.1:9464
# Of a worker. A container that runs anything else for long needs --no-healthcheck or its own.
HEALTHCHECK --interval=30s --timeout=30s --start-period=30s --retries=3 \
    CMD ["smidgen", "doctor", "--worker", "http://127.0.0.1:9464"]
ENTRYPOINT ["smidgen"]
CMD ["--help"]
