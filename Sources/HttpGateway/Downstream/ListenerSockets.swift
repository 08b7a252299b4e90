import GatewayConfig
import Glibc
import HttpWare

/// The sockets that the listeners of a configuration are bound to, one descriptor a loop. Used on the control loop only.
struct ListenerSockets {
    /// One address that is listened on.
    struct Bound {
        /// Tells sockets apart, on all loops.
        let number: Int
        /// The listener, as the configuration in force has it.
        let listener: ListenerDefinition
        /// The port is the one that was given for port 0.
        let address: SocketAddress
        /// One for each loop, while no loop has taken it over.
        var descriptors: [Int32]?
    }

    private(set) var bound: [Bound] = []
    private var nextNumber = 0

    /// The sockets for these listeners: those that are bound to the same address are kept, whatever else changed of them;
    /// the others are bound. Throws the first that cannot be, and then nothing is left open that was not before.
    func rebound(to listeners: [ListenerDefinition], loops: Int) throws -> ListenerSockets {
        var next = ListenerSockets()
        next.nextNumber = nextNumber
        do {
            for listener in listeners {
                if let kept = bound.first(where: { $0.listener.isBound(like: listener) }) {
                    next.bound.append(
                        Bound(number: kept.number, listener: listener, address: kept.address, descriptors: nil))
                    continue
                }
                let descriptors = try ListenerSockets.bind(listener, count: loops)
                let address = descriptors.first.flatMap { Socket.localAddress($0) } ?? listener.bind
                next.bound.append(
                    Bound(number: next.nextNumber, listener: listener, address: address, descriptors: descriptors))
                next.nextNumber += 1
            }
            return next
        } catch {
            next.closeUntaken()
            throw error
        }
    }

    /// Throws the first listener where another program listens already, although its port could be shared: before anything is
    /// bound, for then it may be our own.
    static func requireFree(_ listeners: [ListenerDefinition]) throws(ListenError) {
        for listener in listeners {
            do throws(SystemError) {
                try Socket.requireFree(listener.bind)
            } catch {
                throw ListenError(listener: listener, reason: "\(error)")
            }
        }
    }

    /// Closes the descriptors that no loop has taken over.
    func closeUntaken() {
        for socket in bound {
            guard let descriptors = socket.descriptors else { continue }
            for descriptor in descriptors { Socket.close(descriptor) }
            if case .unix(let path) = socket.address { unlink(path) }
        }
    }

    /// The loops have the descriptors now.
    mutating func markTaken() {
        for index in bound.indices { bound[index].descriptors = nil }
    }

    /// The files of Unix sockets.
    var paths: Set<String> {
        Set(
            bound.compactMap { socket in
                if case .unix(let path) = socket.address { path } else { nil }
            })
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
}

/// A listener cannot be bound.
public struct ListenError: Error, CustomStringConvertible {
    let listener: ListenerDefinition
    let reason: String

    public var description: String {
        "\(listener.location): listeners.\(listener.name): cannot listen on \(listener.bind): \(reason)"
    }
}
