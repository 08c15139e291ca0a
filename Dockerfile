# Two stages: a toolchain that builds, and a small image that runs.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin heldout

FROM debian:bookworm-slim
RUN useradd --system --create-home --home-dir /var/lib/heldout heldout
COPY --from=build /src/target/release/heldout /usr/local/bin/heldout
COPY --from=build /src/protocols /usr/share/heldout/protocols
USER heldout
ENV HELDOUT_DATA=/var/lib/heldout/data
VOLUME /var/lib/heldout
# One preregistered study from start to verdict; `serve` listens on loopback only.
ENTRYPOINT ["heldout"]
CMD ["run", "/usr/share/heldout/protocols/quickstart.toml"]
