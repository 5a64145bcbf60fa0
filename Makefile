# Pictor's commands. `make run` and `make test` need nothing but git, make and a Swift 6.3 toolchain: they install
# the Debian packages that are missing.

release := swift build -c release --static-swift-stdlib
program := .build/release/pictor

.PHONY: help run build test test-sanitized lint format smoke bench bench-compare gallery container-check set-up

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: build ## build for release and serve on 127.0.0.1:8080, with samples/ as local:///
	exec $(program) --config config/pictor.json5 --sources.local_root samples

build: set-up ## build for release: .build/release/pictor and pictor-imager
	$(release)

test: set-up ## all tests
	@scripts/set-up nginx-light openssl
	swift build --build-tests
	scripts/run-tests

test-sanitized: set-up ## all tests under the thread sanitizer
	@scripts/set-up nginx-light openssl
	swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	TSAN_OPTIONS=halt_on_error=1 scripts/run-tests --sanitize=thread --scratch-path .build-tsan

lint: ## formatting and house rules
	scripts/lint

format: ## write the sources as lint wants them
	swift format -i -r Package.swift Sources Tests benchmarks/*/

smoke: build ## the release program over HTTP
	scripts/smoke

bench: build ## the claims of docs/performance.md, measured and written there; ONLY=hits,misses: some
	benchmarks/run --write $(if $(ONLY),--only $(ONLY))

bench-compare: build ## this tree beside another revision, in turn: make bench-compare REV=main
	benchmarks/run compare $(REV)

gallery: build ## docs/gallery.md: what each parameter makes of the samples
	@scripts/set-up python3
	scripts/gallery

container-check: ## build the container, run it, ask it for a picture
	scripts/container-check

set-up:
	@scripts/set-up
