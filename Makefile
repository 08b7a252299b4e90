# Everything is done from here: `make run`, `make test`, `make install`, `make dist`, `make docs`, `make bench`, `make format`.

CONFIG ?= conf/httpware.yaml
JOBS ?= 4
# With DEBUG=1, everything that needs the program takes the debug build, which is ready much sooner after a change: make wire DEBUG=1.
BINARY := .build/$(if $(DEBUG),debug,release)/httpware

# A crash under test must end the test: Swift's backtracer can hang for ever.
export SWIFT_BACKTRACE = enable=no
# Where swiftly and the archive from swift.org put the toolchain, when PATH does not name it.
export PATH := $(PATH):$(HOME)/.swiftly/bin:$(HOME)/.local/share/swiftly/bin:/usr/local/swift/usr/bin

# What `httpware version` shows: read by Package.swift.
export HTTPWARE_COMMIT := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)

# For builds only: SwiftPM writes the flags of the traits in the order of a hashed set, and another order compiles everything again.
STEADY := env SWIFT_DETERMINISTIC_HASHING=1

.PHONY: run test extras bench format lint lint-tools count waits setup build wire differential imports clients acme load faults jail simulation soak races leaks stores containers trial-trixie reference docs page pictures dist install

# Sets up what is missing, builds, and starts the gateway in the foreground.
run: build
	exec $(BINARY) run -c $(CONFIG)

# Sets up what is missing, and runs every test: in Swift, then over the wire against the release binary.
test: setup
	.ci/test

# Compiles what no test compiles, and nothing runs: benchmarks, fuzz targets, and the program of `make stores`. Soon done behind `make test`.
extras: setup
	HTTPWARE_EXTRAS=1 $(STEADY) swift build --target Extras

# The micro benchmarks, the client beside async-http-client, then a short comparison on the loopback with the peers that are installed.
bench: setup
	HTTPWARE_BENCH=1 $(STEADY) swift build -c release --scratch-path .build-bench --product httpware-bench
	HTTPWARE_BENCH=1 swift run -c release --scratch-path .build-bench --skip-build httpware-bench
	HTTPWARE_BENCH=1 swift run -c release --scratch-path .build-bench --skip-build httpware-bench clients
	HTTPWARE_BENCH=1 swift run -c release --scratch-path .build-bench --skip-build httpware-bench inflight
	$(MAKE) --no-print-directory build
	python3 Tests/Bench/run.py --binary $(BINARY)

# Only the protocol suite, real clients, robustness under load: against the release binary.
wire: build
	python3 Tests/Wire/run.py --binary $(BINARY) --jobs $(JOBS)

# Odd requests to the program, nginx, HAProxy and Envoy at the same time: the requests that arrive at the origin server are compared. INPUTS=20000000
# is the whole run, of hours; SEED= repeats one.
INPUTS ?= 100000
differential: build
	python3 Tests/Differential/run.py --binary $(BINARY) --inputs $(INPUTS) $(if $(SEED),--seed $(SEED))

# The same requests to other gateways and to the program with what `import` makes of their files.
imports: build
	python3 Tests/Import/run.py --binary $(BINARY)

clients: build
	python3 Tests/Clients/run.py --binary $(BINARY)
	python3 Tests/Clients/glewlwyd.py --binary $(BINARY)
	python3 Tests/Clients/oidc_login.py --binary $(BINARY)
	python3 Tests/Clients/login_browser.py --binary $(BINARY)
	python3 Tests/Clients/own_gateway.py --binary $(BINARY)
	$(MAKE) --no-print-directory acme

acme: build
	python3 Tests/Clients/acme.py --binary $(BINARY)
	python3 Tests/Clients/sigv4.py --binary $(BINARY)

load: build
	python3 Tests/Load/run.py --binary $(BINARY)
	python3 Tests/Load/tokens.py --binary $(BINARY)
	python3 Tests/Load/cache.py --binary $(BINARY)
	python3 Tests/Load/moves.py --binary $(BINARY)
	python3 Tests/Load/sticky.py --binary $(BINARY)
	python3 Tests/Load/scripts.py --binary $(BINARY)
	python3 Tests/Load/redis.py --binary $(BINARY)
	python3 Tests/Load/redis_failover.py --binary $(BINARY)
	python3 Tests/Load/redis_scale.py --binary $(BINARY)
	python3 Tests/Load/h2_origins.py --binary $(BINARY)

# The wall of `with --jail`: hostile and ordinary programs, as root and as a user without rights. Needs Linux with user namespaces; what is not
# installed is left out.
jail: build
	python3 Tests/Jail/run.py --binary $(BINARY)
	[ "$$(id -u)" != 0 ] || setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/tmp python3 Tests/Jail/run.py --binary $(BINARY)

# Faults of origin servers, clients, machine and names: needs root, nftables and gcc; the last one takes 30 minutes.
faults: build
	python3 Tests/Faults/run.py --binary $(BINARY)

# The engine in simulated worlds, one for each seed, without sockets and threads: Tests/Simulation/README.md. SEED= is the first seed, SCRIPT= a file
# that repeats one world. The same flags as `build`, so that nothing is compiled twice.
SEEDS ?= 100000
simulation: setup
	$(STEADY) swift build -c release --product Simulate --static-swift-stdlib -Xcc -ffile-prefix-map="$(CURDIR)"=. -Xlinker --build-id=none
	$(STEADY) .build/release/Simulate $(if $(SCRIPT),--script $(SCRIPT),--seeds $(SEEDS) $(if $(SEED),--from $(SEED)))

# Everything at once, for MINUTES: all protocols, caches, tokens, limits and captures, under faults of all kinds; every response is checked. The page with
# plots is .build/soak.html. SEED= repeats the faults of another run. Needs root, nginx and redis-server.
MINUTES ?= 90
soak: build
	python3 Tests/Soak/run.py --binary $(BINARY) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# The stores, the wares whose requests wait for each other, the balancer, and the client, under the thread sanitizer.
races: setup
	$(STEADY) swift build --build-tests --sanitize=thread --scratch-path .build-tsan
	swift test --skip-build --sanitize=thread --scratch-path .build-tsan --filter \
		'MemoryStoreTests|DiskStoreTests|StoreListTests|HttpCacheCollapseTests|CoalesceTests|CacheTurmoilTests|BalancerTurmoilTests|HttpWareClientTests'

# The client under the address sanitizer, which tells of leaks at the end.
leaks: setup
	$(STEADY) swift build --build-tests --sanitize=address --scratch-path .build-asan
	swift test --skip-build --sanitize=address --scratch-path .build-asan --filter HttpWareClientTests

# The disk store under kills, damage and a full disk.
stores: setup
	HTTPWARE_BENCH=1 $(STEADY) swift build -c release --scratch-path .build-bench --product StoreTrial
	python3 Tests/Load/stores.py --binary .build-bench/release/StoreTrial

# Containers by a real engine: the image of docker/Dockerfile, which compiles everything again, docker/compose.yaml, pods, the image and the archive of
# `make dist`, the Dockerfile of a package of one's own. Needs root, podman, debootstrap and 15 GiB, and takes an hour; PARTS= chooses.
PARTS ?=
containers: dist
	@.ci/setup podman runc containernetworking-plugins netavark aardvark-dns iptables iproute2 skopeo debootstrap
	python3 Tests/Containers/run.py --binary $(BINARY) $(PARTS)

# Every test in Debian 13: needs root, debootstrap and 6 GiB.
trial-trixie:
	.ci/trixie make test

# The article about wares, and a page for each, from what they declare and from the articles that name them.
reference: build
	rm -f Sources/HttpGateway/HttpGateway.docc/Wares/ware-*.md
	$(BINARY) wares --markdown --into Sources/HttpGateway/HttpGateway.docc

# The documentation as a static site, .build-docs/site: the articles with a search, and every module's types by DocC. A warning is an error. BASE= is the
# path below which it will be served. `.ci/docs --articles` writes the articles alone, in a second.
docs: setup
	.ci/docs --base "$(BASE)"

# What is given to others: a Debian package, an archive with the C libraries, the container image, sums, and what is in them. lintian checks the
# package if it is installed. `make dist TRY=--try` also installs it in a bare Debian: needs root and debootstrap.
dist: build
	@.ci/setup dpkg-dev lowdown patchelf
	python3 docker/dist.py --binary $(BINARY) $(TRY)

# Program, manual pages, completions and examples under PREFIX, as the archive of `make dist` has them.
PREFIX ?= /usr/local
install: build
	@.ci/setup lowdown
	python3 docker/dist.py --binary $(BINARY) --install "$(PREFIX)"

# Swift, JavaScript and C.
format:
	@.ci/lint --format

# Swift, Python, C and JavaScript. Tools that are missing are skipped with a sentence; `make lint-tools` installs them into .build-lint.
lint:
	@.ci/lint

# The size of the middle room: lines, functions, values, files that no test names. COMMITS= compares commits.
count:
	@python3 -B Tests/Rooms/count.py $(COMMITS)

# The wait for a release build, by module: the table of CONTRIBUTING.md.
waits:
	@python3 -B Tests/Rooms/waits.py

lint-tools:
	@.ci/lint --setup

setup:
	@.ci/setup

# With the Swift runtime in it, so that the program runs without the toolchain; without the path of this folder, also in an id.
build: setup
ifdef DEBUG
	$(STEADY) swift build --product httpware
else
	$(STEADY) swift build -c release --product httpware --static-swift-stdlib -Xcc -ffile-prefix-map="$(CURDIR)"=. -Xlinker --build-id=none
endif

# The inspector page in headless Chromium: Debian's chromium and chromium-driver. Skipped without them.
page: build
	python3 Tests/Page/run.py --binary $(BINARY)

# The pictures of the README, from real traffic; needs what `page` needs.
pictures: build
	python3 Tests/Page/pictures.py --binary $(BINARY)
