# One image for every stage, agent and webhook; the command says which: docker run smidgen worker aggregate
# The digest is of the tag before it; docs/operations.md (Images) says where it is from and how to renew it.

FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1 AS build
WORKDIR /src

# uv installs the locked subset that runs in production (the extra server) and checks its hashes.
COPY requirements.lock ./
RUN sed -n '/^uv==/,/[^\\]$/p' requirements.lock > uv.lock \
 && pip install --no-cache-dir --require-hashes --only-binary :all: -r uv.lock \
 && python -m venv --without-pip /opt/smidgen

COPY pyproject.toml README.md LICENSE topics.yaml ./
COPY pipeline pipeline
COPY agents agents
COPY loadgen loadgen
RUN uv pip install --no-cache --python /opt/smidgen/bin/python \
    --constraints requirements.lock --build-constraints requirements.lock '.[server]'

FROM python:3.11.13-slim-bookworm@sha256:86adf8dbadc3d6e82ee5dd2c74bec2e1c2467cdad47886280501df722372d2e1
# git reads the commits that changes and webhooks publish. Sources are parsed by libraries of the lock: no ctags.
RUN apt-get update \
 && apt-get install --yes --no-install-recommends git \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/smidgen /opt/smidgen
# By number, so that Kubernetes can see that it is not root.
RUN groupadd --gid 10001 smidgen && useradd --uid 10001 --gid 10001 --create-home smidgen
USER 10001:10001
WORKDIR /home/smidgen
ENV PATH=/opt/smidgen/bin:$PATH PYTHONUNBUFFERED=1 SMIDGEN_HEALTH=127.0.0.1:9464
# Of a worker. A container that runs anything else for long needs --no-healthcheck or its own.
HEALTHCHECK --interval=30s --timeout=15s --start-period=30s --retries=3 \
    CMD ["python", "-m", "pipeline.http.probe", "ready"]
ENTRYPOINT ["smidgen"]
CMD ["--help"]
