# For those who build images by a Dockerfile; `make image` makes the same without a daemon.
ARG GO_VERSION=1.26
FROM golang:${GO_VERSION} AS build
WORKDIR /src
COPY . .
RUN make build licenses

FROM scratch
COPY --from=build /src/bin/webhook /src/bin/reapjob /
COPY --from=build /src/bin/licenses /licenses
USER 65532:65532
ENTRYPOINT ["/webhook"]
