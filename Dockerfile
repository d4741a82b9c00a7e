FROM rust:1.95-slim-bookworm AS build
# gcc and make: two dependencies build their C parts (TLS, SQLite).
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked && cp target/release/tollgate /tollgate

FROM debian:bookworm-slim
# The system's certificate store is what upstream TLS trusts.
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/tollgate --create-home tollgate
COPY --from=build /tollgate /usr/local/bin/tollgate
USER tollgate
# Answers paid for live here: keep it on a volume.
WORKDIR /var/lib/tollgate
VOLUME /var/lib/tollgate
ENV TOLLGATE_CONFIG=/etc/tollgate/tollgate.toml
# 8080 callers, 9099 health, metrics and admin. No config is built in: mount one.
EXPOSE 8080 9099
STOPSIGNAL SIGTERM
ENTRYPOINT ["tollgate"]
CMD ["serve"]
