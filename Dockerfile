# Builds on the official Swift image and runs on Debian slim: no toolchain, no curl, not root.

FROM swift:6.3-bookworm AS build
WORKDIR /build
COPY scripts/set-up scripts/set-up
RUN scripts/set-up
COPY Package.swift ./
COPY Sources Sources
COPY Tests Tests
COPY benchmarks benchmarks
RUN swift build -c release --static-swift-stdlib --disable-local-rpath --product pictor \
 && swift build -c release --static-swift-stdlib --disable-local-rpath --product pictor-imager \
 && strip .build/release/pictor .build/release/pictor-imager

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
      libmicrohttpd12 libvips42 libcurl4 zlib1g libbrotli1 libzstd1 libseccomp2 libsystemd0 ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin pictor \
 && install -d -o pictor -g pictor /var/cache/pictor
COPY --from=build /build/.build/release/pictor /build/.build/release/pictor-imager /usr/local/bin/
USER pictor
ENV PICTOR_SERVER_ADDRESS=0.0.0.0 \
    PICTOR_DISK_PATH=/var/cache/pictor \
    PICTOR_LOG_FORMAT=json
VOLUME /var/cache/pictor
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["pictor", "healthcheck"]
ENTRYPOINT ["pictor"]
