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
ENV PATH=/opt/smidgen/bin:$PATH PYTHONUNBUFFERED=1
ENTRYPOINT ["smidgen"]
CMD ["--help"]
