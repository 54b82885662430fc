# One image with all programs; a Deployment chooses which one runs. Build: docker build -t autoact .
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
# The agents are one program, called by three names: what it takes in memory is there once on a node.
RUN cargo build --release --locked --bins \
 && mkdir /out && for bin in autoact gateway agents memory meta-agent; do cp "target/release/$bin" /out/; done \
 && for agent in plan-agent tool-agent reflect-agent; do ln -s agents "/out/$agent"; done

FROM debian:bookworm-slim
# certificates: what `--backend https://…` is verified against
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin autoact && mkdir -p /var/lib/autoact && chown 10001:10001 /var/lib/autoact
COPY --from=build /out/ /usr/local/bin/
COPY models/stem /opt/autoact/models/stem
COPY corpora/atlas /opt/autoact/corpora/atlas
COPY tasks /opt/autoact/tasks
WORKDIR /opt/autoact
USER 10001:10001
# gRPC; metrics and probes
EXPOSE 7400 7401 7402 7403 7404 7500 7501 7502 7503 7504
CMD ["gateway"]
