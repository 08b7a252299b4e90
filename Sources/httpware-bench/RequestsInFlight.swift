import HttpWare

#if HTTPWARE_BENCH
    import Glibc
    import HttpWareClient
    import HttpWareTesting
    import Synchronization

    /// Runs many concurrent requests on a number of connections. Measures their memory, and whether all of them complete.
    ///
    ///     httpware-bench inflight [REQUESTS [CONNECTIONS]]
    enum RequestsInFlight {
        /// The maximum memory of a request that waits for a connection, including its task.
        static let limit = ByteCount.kibibytes(20)

        /// Throws if a request fails, or if the requests use too much memory or too many connections.
        static func run(requests: Int, connections: Int) async throws {
            let all = LoopWait<Void>()
            let gate = Task { try await all.value() }
            let origin = try LocalOrigin(keepsRequests: false) { _ in
                try await gate.value
                return HttpResponse(
                    .ok, fields: ["Content-Type": "application/json"], content: .bytes(BenchPage.content))
            }
            var service = ServiceDefinition(baseURL: try BaseUrl(origin.url))
            service.pool.maxPerEndpoint = connections
            let begun = Mutex(0)
            let manager = HttpManager(
                service: service,
                middlewares: [
                    OnRequest { _, _ in
                        let count = begun.withLock { count in
                            count += 1
                            return count
                        }
                        if count == requests { all.resume(returning: ()) }
                    }
                ])
            let before = residentBytes()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<requests { group.addTask { keep(try await manager.send(GetModel<BenchPage>())) } }
                try await gate.value
                let each = ByteCount.bytes((residentBytes() - before) / requests)
                print("\(requests) requests under way: \(each.bytes) bytes of memory each")
                try await group.waitForAll()
                let used = await origin.connectionCount()
                print("all complete, on \(used) connections; peak of the process \(peakBytes() >> 20) MiB")
                guard each.bytes <= limit.bytes, used <= connections else { throw Exceeded() }
            }
        }

        struct Exceeded: Error {}

        private static func residentBytes() -> Int {
            guard let file = fopen("/proc/self/statm", "re") else { return 0 }
            defer { fclose(file) }
            var text = [CChar](repeating: 0, count: 128)
            guard fgets(&text, Int32(text.count), file) != nil else { return 0 }
            let fields = String(decoding: text.map(UInt8.init(bitPattern:)), as: UTF8.self).split(separator: " ")
            return (fields.dropFirst().first.flatMap { Int($0) } ?? 0) * Int(getpagesize())
        }

        private static func peakBytes() -> Int {
            var usage = rusage()
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
            return usage.ru_maxrss * 1024
        }
    }
#endif
