public import GatewayConfig
import Glibc
public import HttpWare
import Wares

/// A running gateway: its loops, listeners and services.
///
/// Used from one thread: the one that runs `run()`.
public final class Gateway {
    private let configuration: GatewayConfiguration
    private let log: GatewayLog
    private var workers: [Worker] = []
    /// The loop of the thread that called `run()`: signals, and the end.
    private let control: EventLoop
    private let signals: Signals
    private let inbox: SignalInbox
    private var unixPaths: [String] = []
    /// Where each listener listens, in file order: the port is the one that was given for port 0.
    public private(set) var addresses: [(name: String, mode: ListenerDefinition.Mode, address: SocketAddress)] = []

    /// Binds every listener and begins to serve, on so many loops. Throws the first listener that cannot be bound, before
    /// anything is served.
    public init(_ configuration: GatewayConfiguration, loops: Int, log: GatewayLog) throws {
        self.configuration = configuration
        self.log = log
        control = try EventLoop(name: "control")
        // Before anything listens: a signal that comes from now on waits for `run()`.
        let inbox = SignalInbox()
        self.inbox = inbox
        signals = try Signals([SIGTERM, SIGINT, SIGHUP], on: control) { inbox.received?($0) }
        let services = ServiceTable.make(configuration)
        var sockets: [(ListenerDefinition, [Int32])] = []
        do {
            for listener in configuration.listeners {
                let descriptors = try Gateway.bind(listener, count: loops)
                sockets.append((listener, descriptors))
                let address = descriptors.first.flatMap { Socket.localAddress($0) } ?? listener.bind
                addresses.append((listener.name, listener.mode, address))
                if case .unix(let path) = listener.bind { unixPaths.append(path) }
            }
            workers = try (0..<loops).map { try Worker(name: "loop \($0)", log: log) }
        } catch {
            for (_, descriptors) in sockets { for descriptor in descriptors { Socket.close(descriptor) } }
            throw error
        }
        let tables = sockets.map { listener, _ in RouteTable(listener, services: services) }
        for (index, worker) in workers.enumerated() {
            let routers = zip(sockets, tables).map { socket, table in
                (socket.0, socket.1[index], RouteTable(copying: table))
            }
            worker.loop.execute { [log] in
                do {
                    try worker.prepare()
                } catch {
                    log.write(.critical, "the resolver cannot start: \(error)")
                    exit(3)
                }
                for (listener, descriptor, router) in routers {
                    worker.listen(
                        on: descriptor, listener, router: router,
                        mostConnections: max(1, listener.limits.connections / loops))
                }
            }
        }
    }

    /// One descriptor a loop. TCP listeners share the port; those of a Unix socket are copies of one.
    private static func bind(_ listener: ListenerDefinition, count: Int) throws -> [Int32] {
        var descriptors: [Int32] = []
        do {
            var address = listener.bind
            for _ in 0..<count {
                if case .unix = address, let first = descriptors.first {
                    let copy = fcntl(first, F_DUPFD_CLOEXEC, 0)
                    guard copy >= 0 else { throw SystemError("dup") }
                    descriptors.append(copy)
                    continue
                }
                descriptors.append(try Socket.listen(on: address))
                if address.port == 0, let bound = Socket.localAddress(descriptors[0]) { address = bound }
            }
            return descriptors
        } catch {
            for descriptor in descriptors { Socket.close(descriptor) }
            throw ListenError(listener: listener, reason: "\(error)")
        }
    }

    /// Serves until SIGTERM or SIGINT: the first drains, the second stops. SIGHUP reopens log files.
    public func run() {
        var isDraining = false
        inbox.received = { [self] signal in
            if signal == SIGHUP {
                log.write(.info, "reopening log files")
                LogWriter.shared.reopen()
                return
            }
            if isDraining {
                log.write(.info, "stopping")
                control.stop()
            } else {
                isDraining = true
                log.write(.info, "draining")
                drain()
            }
        }
        control.run()
        inbox.received = nil
        signals.close()
        for worker in workers {
            worker.loop.execute {
                worker.close()
                worker.loop.stop()
            }
        }
        for worker in workers { worker.loop.join() }
        for path in unixPaths { unlink(path) }
        log.write(.info, "stopped")
        log.flush()
    }

    /// Ends `run()` at once; from any thread.
    public func stop() { control.stop() }

    private func drain() {
        // Touched on the control loop only.
        let left = Countdown(workers.count)
        let control = self.control
        for worker in workers {
            worker.loop.execute {
                worker.drain { control.execute { if left.countDown() { control.stop() } } }
            }
        }
    }
}

/// Where signals go, once `run()` has begun. Used on the control loop only.
private final class SignalInbox {
    var received: ((Int32) -> Void)?
}

/// Counts to nothing.
///
/// Unchecked: used on the control loop only.
private final class Countdown: @unchecked Sendable {
    private var left: Int

    init(_ count: Int) { left = count }

    /// Whether that was the last.
    func countDown() -> Bool {
        left -= 1
        return left == 0
    }
}

/// A listener cannot be bound.
public struct ListenError: Error, CustomStringConvertible {
    let listener: ListenerDefinition
    let reason: String

    public var description: String {
        "\(listener.location): listeners.\(listener.name): cannot listen on \(listener.bind): \(reason)"
    }
}
