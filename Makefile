# Pictor's commands. `make run` and `make test` need git, make, ca-certificates and a Swift 6.3 toolchain. They
# install the other Debian packages.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

release := swift build -c release --static-swift-stdlib
program := .build/release/pictor
# pkg-config names a flag for glib that SwiftPM refuses and that nothing here needs.
tidied := 2>&1 | { grep --line-buffered -v '^warning: prohibited flag(s): -pthread' || true; }
sample := http://127.0.0.1:$${PICTOR_SERVER_PORT:-8080}/image?url=local:///hills.jpg&scale=0.5

.PHONY: help run build build-all test test-sanitized lint format docs smoke bench bench-compare gallery container-check \
	fresh-check memory-check set-up

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: build ## build for release and serve on 127.0.0.1:8080, with samples/ as local:///
	@echo; echo "Once it says \"serving\", open  $(sample)"; echo
	@exec $(program) --config samples/pictor.json5

build: set-up ## build for release: .build/release/pictor and pictor-imager
	@$(release) --product pictor $(tidied)
	@$(release) --product pictor-imager $(tidied)

build-all: set-up
	$(release)

test: set-up ## all tests
	@scripts/set-up nginx-light openssl
	swift build --build-tests
	scripts/run-tests

test-sanitized: set-up ## all tests under the thread sanitizer
	@scripts/set-up nginx-light openssl
	swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	TSAN_OPTIONS=halt_on_error=1 scripts/run-tests --sanitize=thread --scratch-path .build-tsan

lint: ## formatting, house rules and documents
	scripts/lint

format: ## write the sources as lint wants them
	swift format -i -r Package.swift Sources Tests benchmarks/*/

docs: build ## links, names and completeness of the documents, and their commands
	@scripts/set-up python3 curl
	scripts/check-docs
	scripts/run-docs

smoke: build ## the release program over HTTP
	scripts/smoke

bench: build-all ## the claims of docs/performance.md, measured and written there; ONLY=hits,misses: some
	benchmarks/run --write $(if $(ONLY),--only $(ONLY))

bench-compare: build-all ## this tree beside another revision, in turn: make bench-compare REV=main
	benchmarks/run compare $(REV)

gallery: build ## docs/gallery.md: what each parameter makes of the samples
	@scripts/set-up python3
	scripts/gallery

container-check: ## build the container, run it, ask it for an image
	scripts/container-check

fresh-check: ## README's two commands in a bare Debian 12 with git, make, ca-certificates and Swift
	scripts/fresh-check

memory-check: build ## large images in control groups of 512 and 300 MiB: the server has to survive (root)
	scripts/memory-check 512
	scripts/memory-check 300

set-up:
	@scripts/set-up
