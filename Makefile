# Pictor's commands. `make run` and `make test` need git, make, ca-certificates and a Swift 6.3 toolchain. They
# install the other Debian packages.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# No RUNPATH: libraries are found in the system's folders alone.
# Stripped (-s): symbols and debug data are half of a program.
release := swift build -c release --static-swift-stdlib --disable-local-rpath -Xlinker -s
program := .build/release/pictor
# What smoke and docs run: the release build, or with BUILD=debug the build that the tests left.
BUILD := release
built := $(if $(filter release,$(BUILD)),build)
page := http://127.0.0.1:$${PICTOR_SERVER_PORT:-8080}/

.PHONY: help run build build-all build-sanitized test test-sanitized fuzz lint generated format docs docs-site check-clients check-deployments check-doors check-fleet check-metrics check-openapi \
	check-page check-s3 check-tracing smoke bench bench-compare gallery container-check deb deb-check fresh-check memory-check memory-check-v2 pin-images release release-check soak set-up

help: ## what there is
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

run: build ## build for release and serve on 127.0.0.1:8080, with samples/ as local:///
	@echo; echo "Once it says \"serving\", open  $(page)"; echo
	@exec $(program) --config samples/pictor.json5

build: set-up ## build for release: .build/release/pictor and pictor-imager
	@$(release) --product pictor
	@$(release) --product pictor-imager

# By product: the targets for tests need a library that release builds lack.
build-all: build
	@for product in pipeline fill cache floor; do $(release) --product benchmark-$$product || exit; done

test: set-up ## all tests
	@scripts/set-up nginx-light openssl redis-server curl
	swift build --build-tests
	scripts/run-tests

build-sanitized test-sanitized: export PICTOR_SANITIZED := 1
build-sanitized:
	swift build --build-tests --sanitize=thread --scratch-path .build-tsan

test-sanitized: set-up ## the tests of all that has threads, under the thread sanitizer
	@scripts/set-up nginx-light openssl redis-server curl
	@$(MAKE) build-sanitized
	TSAN_OPTIONS=halt_on_error=1 scripts/run-tests --sanitize=thread --scratch-path .build-tsan

fuzz: export PICTOR_FUZZ_SECONDS := $(or $(SECONDS),60)
fuzz: export PICTOR_FUZZ_SEED := $(or $(SEED),1)
fuzz: export PICTOR_FUZZ_FOLDER := .build/fuzz
# The tests' runner itself leaks 144 bytes at its end.
fuzz: export ASAN_OPTIONS := detect_leaks=0
fuzz: addressed := $(if $(ADDRESS),--sanitize=address --scratch-path .build-asan)
fuzz: set-up ## parsers with random inputs, SECONDS=60 a test; ONLY=Icon: some; SEED=1: the first input; ADDRESS=1: sanitized
	swift build --build-tests $(addressed)
	scripts/run-tests $(addressed) --filter 'Fuzz.*$(ONLY)|$(ONLY).*Fuzz|CacheModel.*$(ONLY)'

lint: ## formatting, house rules and documents
	scripts/lint

generated: ## write what is made from the tables: config/pictor.*, completion, man, openapi.json, rows of docs/configuration.md, docs/moving
	PICTOR_WRITE_FILES=1 scripts/run-tests --filter 'ConfigurationFilesTests|OpenAPITests|PeerPagesTests' || true

format: ## write the sources as lint wants them
	swift format -i -r Package.swift Sources Tests benchmarks/*/

docs: $(built) ## links, names and completeness of the documents, and their commands
	@scripts/set-up python3 curl openssl zsh fish mandoc man-db
	scripts/check-docs
	scripts/check-shells
	scripts/check-unit
	scripts/run-docs .build/$(BUILD)/pictor
	scripts/check-clients .build/$(BUILD)/pictor
	scripts/check-recipes .build/$(BUILD)/pictor

docs-site: ## the documents as static pages with search: .build/site; CHECK=1: follow its links and look at it in Chromium
	@scripts/set-up python3 $(if $(CHECK),chromium chromium-driver)
	scripts/docs-site $(if $(CHECK),--check)

check-metrics: $(built) ## /metrics, the dashboard and the alert rules, with promtool; WRITE=1: docs/dashboard.webp
	@scripts/set-up python3 prometheus $(if $(WRITE),chromium)
	scripts/check-metrics .build/$(BUILD)/pictor
	$(if $(WRITE),scripts/draw-dashboard .build/$(BUILD)/pictor)

check-openapi: $(built) ## /openapi.json by a validator and by a client that is generated of it
	@scripts/set-up python3
	scripts/check-openapi .build/$(BUILD)/pictor

check-tracing: $(built) ## the export of spans, to a collector that parses them with OpenTelemetry's own messages
	@scripts/set-up python3
	scripts/check-tracing .build/$(BUILD)/pictor

check-s3: $(built) ## sources and a shared tier in S3, from moto, with botocore's signatures
	@scripts/set-up python3 redis-server
	scripts/check-s3 .build/$(BUILD)/pictor

check-page: $(built) ## the page at / in headless Chromium, with axe-core; WRITE=1: README's screenshot
	@scripts/set-up python3 chromium chromium-driver
	scripts/check-page .build/$(BUILD)/pictor $(if $(WRITE),--write)

check-deployments: $(built) ## the files in config/: nginx, HAProxy, Varnish, Caddy and stunnel with Redis run, compose, Kubernetes, Helm and pictor.json5 against schemas
	scripts/check-deployments $(if $(ONLY),--only $(ONLY)) .build/$(BUILD)/pictor

check-doors: $(built) ## ask the doors for addresses with known answers: ROWS=FOLDER of PEER.tsv, IMAGES="FOLDER ..." that they name
	@scripts/set-up python3 libvips-tools
	scripts/check-doors --program .build/$(BUILD)/pictor $(ROWS) $(IMAGES)

check-fleet: $(built) ## a model of three Pictors, Redis and S3, killed, frozen and purged by chance; RUNS=200, SEED=1: another order
	@scripts/set-up python3 redis-server haproxy
	scripts/check-fleet --runs $(or $(RUNS),200) --seed $(or $(SEED),1) .build/$(BUILD)/pictor

check-clients: $(built) ## the URL builders of docs/clients in every language and the recipes, against the program
	@scripts/set-up python3
	scripts/check-clients --all .build/$(BUILD)/pictor
	scripts/check-recipes --all .build/$(BUILD)/pictor

smoke: $(built) ## the program over HTTP
	scripts/smoke .build/$(BUILD)/pictor

bench: build-all ## the claims of docs/performance.md, measured and written there; ONLY=hits,misses: some
	benchmarks/run --write $(if $(ONLY),--only $(ONLY))

bench-compare: build-all ## this tree beside another revision, in turn: make bench-compare REV=main
	benchmarks/run compare $(REV)

gallery: build ## docs/gallery.md: what each parameter makes of the samples
	@scripts/set-up python3
	scripts/gallery

pin-images: ## pin the base images of the Dockerfile by their digests, which needs a registry
	scripts/pin-images

container-check: ## build the container, run it, ask it for an image
	scripts/container-check

deb: build ## the Debian package: .build/deb/pictor_VERSION_ARCHITECTURE.deb
	@scripts/make-deb

deb-check: build ## the Debian package, installed, upgraded, removed and purged in a bare Debian like this one (root)
	scripts/deb-check

release: build ## what people install, in dist/: tarball, Debian package, chart, container image, bill of materials (root)
	@scripts/release

release-check: ## dist/: its sums, a second run, the tarball, the package and the image in use (root)
	scripts/deb-check dist
	scripts/container-check dist

fresh-check: ## README's two commands, and deb-check, in a bare Debian, SUITE=trixie or bookworm
	scripts/fresh-check

memory-check: build ## large images in control groups of 512 and 300 MiB: the server has to survive (root)
	scripts/memory-check 512
	scripts/memory-check 300

memory-check-v2: build ## the same under control groups of version 2, in an emulated machine; FORMATS, VARIANTS, READERS (root)
	scripts/memory-check-v2 $(or $(MEBIBYTES),512) $(or $(REQUESTS),220)

soak: build ## everything at once for MINUTES=30: no leak, no wrong or late answer; SEED=2: another order
	@scripts/set-up python3
	scripts/soak --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1)

set-up:
	@scripts/set-up
