# Each target does all the set-up it needs on a fresh Debian 12 machine.
BUILD ?= build
PYTHON ?= /usr/bin/python3
.PHONY: train test test-long build configure bench deb wheel format setup clean

train: build
	$(BUILD)/stretto train examples/quickstart.toml

# The library, the executable and the examples.
build: configure
	@cmake --build $(BUILD) --target stretto_cli examples

configure: setup
	@cmake --preset release -B $(BUILD) > $(BUILD).log 2>&1 || (cat $(BUILD).log; exit 1)
	@rm -f $(BUILD).log

test: configure
	@cmake --build $(BUILD)
	ctest --test-dir $(BUILD) -j2 --output-on-failure

test-long: test
	scripts/test-long

bench: configure
	@cmake --build $(BUILD)
	scripts/bench

# build/stretto_VERSION_amd64.deb
deb: build
	cd $(BUILD) && cpack > cpack.log 2>&1 || (cat cpack.log; exit 1)

# dist/stretto-VERSION-py3-none-manylinux_2_NN_x86_64.whl
wheel: configure
	@rm -f dist/stretto-*.whl
	STRETTO_BUILD=$(BUILD) $(PYTHON) -m pip wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check -w dist .
	@ls dist/stretto-*.whl

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

setup:
	@scripts/setup

clean:
	rm -rf build build-asan build-tsan build-debug build-arm64 dist
