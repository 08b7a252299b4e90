public import HttpWare
import Synchronization

/// The ways out of a namespace: the descriptors of its listeners, and what is done with their connections.
///
/// The gateway accepts the connections to hosts, on all its loops, and passes each to `enter`. One loop keeps the rest, as a guest: the answers to
/// DNS queries and the exposed ports.
public final class JailDoors: Sendable {
    /// The descriptors of the listeners for connections to hosts, which the gateway owns.
    public let hosts: [Int32]
    private let names = SyntheticNames()
    private let answersNames: Bool
    /// The descriptors that the guest takes over, by their purpose.
    private let others: Mutex<[(JailPlan.Listener.Purpose, Int32)]>

    /// Takes the listeners of the process.
    public init(_ process: JailedProcess) {
        let all = Array(zip(process.plan.listeners.map(\.purpose), process.takeDescriptors()))
        hosts = all.filter { $0.0 == .host }.map(\.1)
        others = Mutex(all.filter { $0.0 != .host })
        answersNames = process.plan.answersNames
    }

    /// Passes a connection to the listener, with the destination that the program meant. Connections to the program's own machine, or to a name
    /// that is not kept any more, are reset. Call this on the loop's thread.
    public func enter(_ listener: LoopListener, _ descriptor: Int32) {
        guard case .ip(let address, let port)? = Socket.localAddress(descriptor),
            let destination = names.destination(address, port: port)
        else { return Socket.reset(descriptor) }
        listener.accept(descriptor, from: JailDoors.client, to: destination)
    }

    /// The address of a program behind the wall, as rules and records see it. Its real one is that of its destination.
    private static let client = SocketAddress.ip(IPAddress(ipv4: 0x7f00_0001), port: 0)

    /// Answers names and passes exposed ports on, on this loop, until the guest is closed. Call this once, on the loop's thread.
    public func makeGuest(for loop: EventLoop) -> any LoopGuest {
        let others = self.others.withLock {
            let taken = $0
            $0 = []
            return taken
        }
        return JailGuest(others, NameAnswers(names: names, answers: answersNames), loop: loop)
    }
}

/// The parts of a wall that one loop keeps. Used on its thread only.
private final class JailGuest: LoopGuest {
    private var server: NameServer?
    private var ports: [ExposedPort] = []

    init(_ doors: [(JailPlan.Listener.Purpose, Int32)], _ answers: NameAnswers, loop: EventLoop) {
        var datagrams: Int32?
        for (purpose, descriptor) in doors {
            switch purpose {
            case .datagramNames: datagrams = descriptor
            case .streamNames:
                guard let datagrams else { continue }
                server = NameServer(answers, loop: loop, datagrams: datagrams, streams: descriptor)
            case .exposed(let port, _):
                // Without IPv6 there is no ::1 to listen on.
                if (try? Socket.adopt(listener: descriptor)) == nil {
                    Socket.close(descriptor)
                } else {
                    ports.append(ExposedPort(port, loop: loop, descriptor: descriptor))
                }
            case .host: break
            }
        }
    }

    func close() {
        server?.close()
        server = nil
        for port in ports { port.close() }
        ports = []
    }
}
