# Each target does all the set-up it needs on a fresh Debian 12 machine.
BUILD ?= build
.PHONY: train test test-long build bench format setup clean

train: build
	$(BUILD)/stretto train examples/quickstart.toml

build: setup
	@cmake --preset release -B $(BUILD) > $(BUILD).log 2>&1 || (cat $(BUILD).log; exit 1)
	@rm -f $(BUILD).log
	@cmake --build $(BUILD)

test: build
	ctest --test-dir $(BUILD) --output-on-failure

test-long: test
	scripts/test-long

bench: build
	scripts/bench

format:
	git ls-files '*.h' '*.cpp' | xargs clang-format -i

setup:
	@scripts/setup

clean:
	rm -rf build build-asan build-tsan build-debug
