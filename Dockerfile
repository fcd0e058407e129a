# The function as an image, for those who build images with a container engine. `cargo xtask package function` builds the
# released package without one.
FROM docker.io/library/rust:1.95.0-alpine3.22 AS build
# The image has this toolchain already: rustup would install the components of rust-toolchain.toml.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /source
COPY . .
# Alpine's target is musl, and its binaries are static.
RUN cargo build --release --locked --package function-paved-road --bin function

# Nothing else is in the image, and the function writes no file: run it with a read-only root file system.
FROM scratch
COPY --from=build /source/target/release/function /function
COPY LICENSE NOTICE /
USER 65532:65532
# gRPC of Crossplane; metrics and health.
EXPOSE 9443 8080
ENTRYPOINT ["/function"]
