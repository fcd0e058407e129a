# Builds the function's image with a container engine. `cargo xtask package function` builds the
# released package without a container engine.
FROM docker.io/library/rust:1.95.0-alpine3.22 AS build
# The image has this toolchain already: rustup would install the components of rust-toolchain.toml.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /source
COPY . .
# Alpine's target is musl, and its binaries are static.
RUN cargo build --release --locked --package function-paved-road --bin function

# The image contains only the function and its licence. The function writes no files, so you can run
# it with a read-only root file system.
FROM scratch
COPY --from=build /source/target/release/function /function
COPY LICENSE NOTICE /
USER 65532:65532
# 9443: gRPC for Crossplane. 8080: metrics and health.
EXPOSE 9443 8080
ENTRYPOINT ["/function"]
