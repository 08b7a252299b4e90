import Glibc

@testable import HttpWare
@testable import HttpWareRedis

/// Something on a Unix socket, or on a free port of the loopback, that a client takes for Redis, and that answers what a test says: the bytes for each piece that
/// came, or none, which closes the connection. On threads of its own; gone with the last reference.
final class FalseRedis: Sendable {
    let path: String
    /// 0 on a Unix socket.
    let port: UInt16
    private let listener: Int32

    /// `answer` is called on several threads.
    init(hasPort: Bool = false, _ answer: @escaping @Sendable ([UInt8]) -> [UInt8]?) throws {
        path = "/tmp/httpware-false-redis-\(UInt64.random(in: 0 ... .max)).sock"
        let listener = try Socket.listen(on: hasPort ? .loopback : .unix(path: path))
        self.listener = listener
        port = hasPort ? Socket.localAddress(listener)?.port ?? 0 : 0
        _ = fcntl(listener, F_SETFL, 0)
        FalseRedis.thread {
            while true {
                guard case .accepted(let client, _) = Socket.accept(listener) else { return }
                _ = fcntl(client, F_SETFL, 0)
                FalseRedis.thread { FalseRedis.serve(client, answer) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        unlink(path)
    }

    var definition: RedisDefinition {
        get throws { RedisDefinition(url: try RedisUrl(optionText: "unix:\(path)")) }
    }

    private static func serve(_ client: Int32, _ answer: @Sendable ([UInt8]) -> [UInt8]?) {
        defer { close(client) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(client, &buffer, buffer.count)
            guard count > 0, let bytes = answer(Array(buffer[..<count])) else { return }
            guard send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return }
        }
    }

    private static func thread(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(FalseRedisBody(body))  // released by falseRedisThread(_:)
        var thread = pthread_t()
        guard pthread_create(&thread, nil, falseRedisThread, box.toOpaque()) == 0 else { return box.release() }
        pthread_detach(thread)
    }
}

private final class FalseRedisBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

private func falseRedisThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    Unmanaged<FalseRedisBody>.fromOpaque(argument).takeRetainedValue().run()  // retained by thread(_:)
    return nil
}
