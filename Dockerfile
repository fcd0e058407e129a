# The function's image: one static binary and nothing else.
#
#   docker build --tag function-paved-road .
#   docker run --rm --read-only --cap-drop ALL --security-opt no-new-privileges \
#     --publish 9443:9443 --volume "$PWD/certs:/certs:ro" --env TLS_SERVER_CERTS_DIR=/certs function-paved-road
#
# It writes no file, so the root can be read-only. Crossplane runs it with a user of its own and mounts the certificates;
# 65532 is for those who run it by hand. For several architectures: docker buildx build --platform linux/amd64,linux/arm64.

# The toolchain that rust-toolchain.toml pins; the file itself stays out, or rustup would fetch clippy and rustfmt too.
FROM rust:1.95.0-alpine AS build
# C for AWS-LC, which TLS is made of.
RUN apk add --no-cache build-base cmake linux-headers
WORKDIR /source
COPY . .
# Rust links statically on Alpine.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked --package function-paved-road --bin function \
    && cp target/release/function /function

FROM scratch
COPY --from=build /function /function
USER 65532:65532
# gRPC, and metrics.
EXPOSE 9443 8080
ENTRYPOINT ["/function"]
