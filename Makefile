# Each target does all the set-up it needs on a fresh Debian 12 machine.
BUILD ?= build
.PHONY: train test test-long build configure bench deb format setup clean

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

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

setup:
	@scripts/setup

clean:
	rm -rf build build-asan build-tsan build-debug
