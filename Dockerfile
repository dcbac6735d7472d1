# An image with the command `stretto`, its library and headers, on Debian 12.
#
#   docker build -t stretto .
#   docker run --rm -v "$PWD:/work" stretto train run.toml
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN make build && cmake --install build --prefix /opt/stretto

FROM debian:12
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends libfmt9 libxxhash0 \
    libpcre2-8-0 libutf8proc2 zlib1g libopenmpi3 openmpi-bin python3-jinja2 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/stretto /usr/local
WORKDIR /work
ENTRYPOINT ["stretto"]
