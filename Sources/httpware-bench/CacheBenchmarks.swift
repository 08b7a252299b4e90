#if HTTPWARE_BENCH
    import Glibc
    @testable import HttpCaching
    @testable import HttpWare
    import Wares

    /// The time at which all responses were stored and are requested.
    private let noon = WallTime(seconds: 1_795_262_400)

    /// A typical request of a client.
    private func request(_ number: Int) -> HttpRequest? {
        try? HttpRequest(
            .get, "http://www.example.com/orders/\(number)",
            fields: ["Host": "www.example.com", "User-Agent": "curl/8.5.0", "Accept": "*/*", "Accept-Encoding": "gzip"])
    }

    /// A stored response: 1 KiB with five fields, fresh for years.
    private func storedHead() -> StoredHead {
        var fields = HttpFields()
        for line in [
            FieldLine(literal: .contentType, "text/html; charset=utf-8"), FieldLine(literal: .contentLength, "1024"),
            FieldLine(literal: .cacheControl, "max-age=999999999"), FieldLine(literal: .etag, "\"0123456789abcdef\""),
            FieldLine(literal: .date, "Sat, 21 Nov 2026 12:00:00 GMT"),
        ] {
            fields.append(line)
        }
        return StoredHead(
            status: .ok, fields: fields, times: MessageTimes(requested: noon, received: noon, date: noon, age: 0),
            directives: ResponseDirectives(["max-age=999999999"]),
            lifetime: FreshnessLifetime(seconds: 999_999_999, source: .maxAge), vary: .none, mode: .shared)
    }

    /// A store with `count` responses, and requests for some of them in random order.
    private struct Filled: Sendable {
        let store = MemoryStore(limit: .gibibytes(8))
        var requests: [HttpRequest] = []
        var keys: [CacheKey] = []

        init(_ count: Int) {
            let head = storedHead()
            for number in 0..<count {
                guard let key = request(number).flatMap({ CacheKeyRule().key(for: $0) }) else { continue }
                let writer = store.write(under: key, length: 1024)
                keep(writer?.append([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1024)))
                writer?.finish(head)
            }
            for turn in 0..<65_536 {
                let number = turn &* 7_919_317 % count
                guard let request = request(number), let key = CacheKeyRule().key(for: request) else { continue }
                requests.append(request)
                keys.append(key)
            }
        }
    }

    private let thousand = Filled(1000)
    private let million = Filled(1_000_000)
    private let overThousand = HttpCache(store: thousand.store)
    private let overMillion = HttpCache(store: million.store)

    /// Exchanges that end at once. If there is a cache, each of them passes it first.
    private func exchanges(
        _ name: String, _ requests: @escaping @Sendable () -> [HttpRequest],
        _ cache: (@Sendable () -> HttpCache)? = nil
    ) -> Benchmark {
        Benchmark(name: name, prepare: { keep(requests()) }) { times in
            struct Answer: Middleware {
                func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                    .abort(with: HttpResponse(.noContent))
                }
            }
            guard let loop = try? EventLoop(name: "bench"),
                let chain = try? WareChain(middlewares: [ChainEntry(Answer())], postwares: [])
            else { return }
            let server = LoopListener(
                name: "bench", transport: LoopTransport(loop: loop, resolver: nil),
                router: OnePlan(ExchangePlan(chain: chain, service: nil, route: nil)))
            let driver = ExchangeDriver(server: server)
            let sink = NoSink()
            let all = requests()
            // Called like the driver does, which copies neither the ware nor the request.
            let ware = cache.map { MiddlewareCall($0()) }
            defer { ware?.free() }
            for turn in 0..<times {
                driver.prepare(sink: sink, connection: .none)
                driver.exchange.heldRequest = all[turn % all.count]
                driver.exchange.lentRequest = all[turn % all.count]
                if let ware { keep(try? ware.handle(&driver.exchange.lentRequest, in: driver.exchange)) }
                driver.requestStarted()
            }
        }
    }

    private let unknown: [HttpRequest] = (0..<4096).compactMap { request(-1 - $0) }
    private let empty = HttpCache(store: MemoryStore(limit: .mebibytes(64)))
    private let alone: HttpCache = {
        var cache = empty
        cache.collapses = false
        return cache
    }()

    private func decided(
        _ what: String, _ cache: @escaping @Sendable () -> HttpCache,
        _ requests: @escaping @Sendable () -> [HttpRequest]
    ) -> Benchmark {
        exchanges("an exchange, and httpCache decides about a request \(what)", requests, cache)
    }

    private func found(_ count: String, _ filled: @escaping @Sendable () -> Filled) -> Benchmark {
        Benchmark(name: "a look-up among \(count) stored responses", prepare: { keep(filled()) }) { times in
            let filled = filled()
            for turn in 0..<times {
                keep(filled.store.find(filled.keys[turn & 65_535]) { $0.vary.matches { _ in [] } })
            }
        }
    }

    let cacheBenchmarks: [Benchmark] = [
        exchanges("an exchange without a cache", { unknown }),
        decided("for what is not stored", { empty }, { unknown }),
        decided("for what is not stored, without collapsing", { alone }, { unknown }),
        decided("for one of 1,000 stored responses", { overThousand }, { thousand.requests }),
        found("1,000", { thousand }),
        Benchmark(name: "a key is made of a request", prepare: {}) { times in
            for turn in 0..<times { keep(CacheKeyRule().key(for: unknown[turn & 4095])) }
        },
    ]

    /// The benchmarks that need more than a gigabyte of memory, made only when they run.
    func millionBenchmarks() -> [Benchmark] {
        [
            decided("for one of 1,000,000 stored responses", { overMillion }, { million.requests }),
            found("1,000,000", { million }),
        ]
    }

    /// The memory of 1,000,000 stored responses of 1 KiB, without content, keys and fields, in bytes for each response.
    /// Measured for the process, and as the store counts it.
    func storeOverhead() -> (process: Int, counted: Int) {
        let before = residentBytes()
        let store = MemoryStore(limit: .gibibytes(8))
        let head = storedHead()
        var known = 0
        for number in 0..<1_000_000 {
            let key = CacheKey(Array("http://www.example.com/orders/\(number)".utf8))
            let writer = store.write(under: key, length: 1024)
            keep(writer?.append([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1024)))
            writer?.finish(head)
            known += key.uri.count + head.fields.lineBytes + 1024
        }
        let grown = residentBytes() - before
        let census = store.census
        precondition(census.responses == 1_000_000, "some were evicted: a mistake of this benchmark")
        return ((grown - known) / 1_000_000, (census.bytes - known) / 1_000_000)
    }

    private func residentBytes() -> Int {
        guard let file = fopen("/proc/self/statm", "re") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, 128, file) != nil else { return 0 }
        let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4096
    }
#endif
