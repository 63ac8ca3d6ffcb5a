# SPDX-License-Identifier: Apache-2.0
# Images that hold one program, the libraries it is linked with, and nothing else: no shell, no
# package manager. `make image` builds all of them; one by hand:
#   buildah bud --target device-plugin -t weft-device-plugin .
# Nothing here names a CPU architecture: --platform linux/arm64 builds the same.
FROM docker.io/library/debian:bookworm-slim AS build
# The list of packages is hack/setup's; a change elsewhere in the tree does not install them anew.
COPY hack/setup /tmp/setup
RUN /tmp/setup \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src
ARG JOBS=2
RUN make -j"$JOBS" all BUILD=/build
RUN hack/image-root /out/device-plugin /build/bin/weft-device-plugin \
    && hack/image-root /out/controller /build/bin/weft-controller /build/bin/weftctl

# The kubelet's folder is root's, so this one runs as root (with no capability: see manifests/).
FROM scratch AS device-plugin
COPY --from=build /out/device-plugin /
ENTRYPOINT ["/usr/bin/weft-device-plugin"]

FROM scratch AS controller
COPY --from=build /out/controller /
USER 65532:65532
ENTRYPOINT ["/usr/bin/weft-controller"]
