# Every target is a line or two; the work stands in Scripts/, so that it can also be run by hand.
# SWIFT_BUILD_FLAGS reaches every `swift build` and `swift test`, for example SWIFT_BUILD_FLAGS="--jobs 1".

# One setting for build, test, check and docs, so that going from one to the next compiles nothing twice.
# TIDEMARK_STRICT=0 lets warnings pass, for a compiler newer than the project.
TIDEMARK_STRICT ?= 1
export TIDEMARK_STRICT
export SWIFT_BUILD_FLAGS

.DEFAULT_GOAL := help
.PHONY: help setup build install uninstall test check fuzz docs demo demo-cluster bench torture fleet simulate mutants format clean

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Installs what a build needs and looks for Swift 6.2 or newer
	@Scripts/setup

build: setup ## Builds everything, with the tests, for debugging
	swift build --traits Server --build-tests $(SWIFT_BUILD_FLAGS)

install: setup ## Installs the command, its manual page and completions (PREFIX=/usr/local, DESTDIR=)
	@Scripts/install

uninstall: ## Takes away what `make install` has put there (PREFIX, DESTDIR)
	@Scripts/install --remove

test: setup ## Runs all tests, builds the examples, proves that the client builds alone
	@Scripts/test

check: setup ## Format, warnings as errors, and the house rules
	@Scripts/check

fuzz: setup ## Feeds every decoder with inputs grown to break it, for a time (SECONDS=60, all together)
	@Scripts/fuzz $(SECONDS)

docs: setup ## Builds the documentation into .build-docs; a warning is an error
	@Scripts/docs

demo: setup ## Builds the `tidemark` command for release and runs its demo
	TIDEMARK_STRICT=0 swift build --configuration release --traits Server --product tidemark \
		--scratch-path .build-release $(SWIFT_BUILD_FLAGS)
	.build-release/release/tidemark demo

demo-cluster: setup ## Three servers on one PostgreSQL: kills one, stops the database, and looks what is lost
	@Scripts/demo-cluster

bench: setup ## Measures capture, transfer and the cost curve (ROWS=100000)
	TIDEMARK_STRICT=0 swift build --configuration release --product TidemarkBenchmarks \
		--scratch-path .build-bench $(SWIFT_BUILD_FLAGS)
	.build-bench/release/TidemarkBenchmarks $(ROWS)

torture: ## Kills, cuts, fills and starves real processes, and looks what is lost (SECONDS=60)
	@Scripts/torture $(SECONDS)

fleet: setup ## Lets older versions meet this one: devices, servers, stores and nodes
	@Scripts/fleet

simulate: setup ## Plays worlds of all apps in which everything goes wrong, on every core (WORLDS=10000)
	@Scripts/simulate $(WORLDS)

mutants: ## Plants bugs in a copy, one at a time, and fails if the simulator misses one of them
	@Scripts/mutants

format: ## Formats the Swift files in place
	@Scripts/check --format

clean: ## Removes everything that was built
	rm -rf .build .build-*
