# Builds on the official Swift image. The result holds Pictor, the libraries that it loads, certificates and a font: no
# shell, no package manager, not root (docs/operations.md#in-a-container).

FROM swift:6.3-bookworm@sha256:7060a792f4cd9eaa0d00826d941cec00ab8d252d33b8b28bc8e105f51f2dba73 AS swift
# The toolchain alone: it is what no package of that Debian has.
RUN cat /var/lib/dpkg/info/*.list | sed 'p; s#^/lib#/usr/lib#; s#^/bin#/usr/bin#' | sort -u >/owned \
 && mkdir /toolchain && find /usr ! -type d | grep -vxFf /owned | tar -cf - -T - | tar -xf - -C /toolchain

FROM debian:trixie-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f AS build
# The toolchain for Debian 12 runs on 13; there is no image of it.
COPY --from=swift /toolchain /opt/swift
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/swift/usr/bin
WORKDIR /build
COPY scripts/set-up scripts/sbom scripts/
RUN scripts/set-up
COPY Package.swift ./
COPY Sources Sources
# Part of the page.
COPY docs/http-api.md docs/
COPY Tests Tests
COPY benchmarks benchmarks
RUN swift build -c release --static-swift-stdlib --disable-local-rpath -Xlinker -s --product pictor \
 && swift build -c release --static-swift-stdlib --disable-local-rpath -Xlinker -s --product pictor-imager \
 && scripts/sbom compiled-in >.build/release/compiled-in

FROM debian:trixie-slim@sha256:a29215f6a35e51e22adffa17f89e9d2ef06214e64a2bad10d765c46aea49f11f AS root
# The pinned image is as old as its digest: libc and others come from Debian's updates.
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get upgrade -qq -y \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
      libmicrohttpd12t64 libvips42t64 libcurl4t64 zlib1g libbrotli1 libzstd1 libseccomp2 libsystemd0 libhiredis1.1.0 \
      libheif-plugin-aomenc libheif-plugin-dav1d libheif-plugin-libde265 ca-certificates fonts-dejavu-core
COPY --from=build /build/.build/release/pictor /build/.build/release/pictor-imager /usr/local/bin/
COPY --from=build /build/.build/release/compiled-in /
COPY scripts/container-root scripts/sbom /
RUN /container-root /image /compiled-in

FROM scratch
COPY --from=root /image /
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Pictor" \
      org.opencontainers.image.description="Image server: loads, scales, encodes and caches the images of the web" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.base.name="debian:trixie-slim"
USER 65532:65532
ENV PATH=/usr/local/bin \
    PICTOR_SERVER_ADDRESS=0.0.0.0 \
    PICTOR_DISK_PATH=/var/cache/pictor \
    PICTOR_LOG_FORMAT=json
VOLUME /var/cache/pictor
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["pictor", "healthcheck"]
ENTRYPOINT ["pictor"]
