import GatewayConfig
import Glibc
import HttpWare

/// The sockets of the listeners of a configuration, with one descriptor for each loop. Used only on the control loop.
struct ListenerSockets {
    /// A bound address.
    struct Bound {
        /// A number that identifies the socket on all loops.
        let number: Int
        /// The listener, as in the running configuration.
        let listener: ListenerDefinition
        /// The address; for port 0, with the port that the system chose.
        let address: SocketAddress
        /// One descriptor for each loop. The loops close them.
        let descriptors: [Int32]
        /// Whether the loops have taken over the descriptors.
        var isTaken = false
        /// Whether the socket was bound by this process, so that no other process has it.
        let isNew: Bool
        /// Whether this process removes the file of a Unix socket.
        let ownsFile: Bool
    }

    private(set) var bound: [Bound] = []
    /// The passed sockets that no listener uses. Sockets of a service manager stay here.
    private(set) var inherited: [InheritedSocket]
    private var nextNumber = 0

    init(inherited: [InheritedSocket] = []) { self.inherited = inherited }

    /// The sockets for these listeners. A socket with the same address is kept, whatever else changed. The others are
    /// inherited or bound. If one cannot be bound, throws, and all new sockets are closed again.
    func rebound(to listeners: [ListenerDefinition], loops: Int) throws -> ListenerSockets {
        var next = ListenerSockets(inherited: inherited)
        next.nextNumber = nextNumber
        do {
            for listener in listeners {
                if let kept = bound.first(where: { $0.listener.isBound(like: listener) }) {
                    next.bound.append(
                        Bound(
                            number: kept.number, listener: listener, address: kept.address,
                            descriptors: kept.descriptors, isTaken: true, isNew: false, ownsFile: kept.ownsFile))
                    continue
                }
                let fitting = inherited.filter { $0.fits(listener.bind, name: listener.name) }
                let descriptors =
                    fitting.isEmpty
                    ? try ListenerSockets.bind(listener, count: loops)
                    : try ListenerSockets.takeSockets(fitting, for: listener, count: loops)
                let address = descriptors.first.flatMap { Socket.localAddress($0) } ?? listener.bind
                next.bound.append(
                    Bound(
                        number: next.nextNumber, listener: listener, address: address, descriptors: descriptors,
                        isNew: fitting.isEmpty, ownsFile: !fitting.contains(where: \.isManagers)))
                next.nextNumber += 1
            }
            return next
        } catch {
            next.closeUntaken()
            throw error
        }
    }

    /// Throws if another program already listens on the port of one of these listeners, even if the port could be shared.
    /// Must be called before anything is bound, because afterwards it could be this gateway itself.
    func requireFree(_ listeners: [ListenerDefinition]) throws(ListenError) {
        for listener in listeners where !inherited.contains(where: { $0.fits(listener.bind, name: listener.name) }) {
            do throws(SystemError) {
                try Socket.requireFree(listener.bind)
            } catch {
                throw ListenError(listener: listener, error)
            }
        }
    }

    /// Closes the descriptors that no loop has taken over.
    func closeUntaken() {
        for socket in bound where !socket.isTaken {
            for descriptor in socket.descriptors { Socket.close(descriptor) }
            if socket.isNew, case .unix(let path) = socket.address { unlink(path) }
        }
    }

    /// The inherited sockets that match none of these listeners.
    func unfitting(_ listeners: [ListenerDefinition]) -> [InheritedSocket] {
        inherited.filter { socket in !listeners.contains { socket.fits($0.bind, name: $0.name) } }
    }

    /// Closes the remaining sockets of the former gateway that this one replaces. The needed ones have been taken over
    /// before.
    mutating func closeInherited() {
        for socket in inherited where !socket.isManagers { Socket.close(socket.descriptor) }
        inherited.removeAll { !$0.isManagers }
    }

    /// The sockets for a gateway that replaces this one, while the loops still use them.
    var heritage: [InheritedSocket] {
        let own = bound.filter { socket in
            !inherited.contains { $0.fits(socket.listener.bind, name: socket.listener.name) }
        }
        return inherited
            + own.flatMap { socket in
                socket.descriptors.map {
                    InheritedSocket(
                        descriptor: $0, address: socket.address, name: socket.listener.name, isManagers: false)
                }
            }
    }

    /// Notes that the loops have taken over the descriptors.
    mutating func markTaken() {
        for index in bound.indices { bound[index].isTaken = true }
    }

    /// The files of Unix sockets that this process removes.
    var paths: Set<String> {
        Set(
            bound.compactMap { socket in
                if socket.ownsFile, case .unix(let path) = socket.address { path } else { nil }
            })
    }

    /// One descriptor for each loop: copies of the sockets, in turn.
    private static func takeSockets(
        _ sockets: [InheritedSocket], for listener: ListenerDefinition, count: Int
    ) throws -> [Int32] {
        guard sockets.count <= count else {
            throw ListenError(
                listener: listener,
                reason:
                    "\(sockets.count) sockets were passed for it, but \(count) loops run; write --workers \(sockets.count)"
            )
        }
        var copies: [Int32] = []
        do {
            for index in 0..<count { copies.append(try Socket.copy(sockets[index % sockets.count].descriptor)) }
            return copies
        } catch {
            for copy in copies { Socket.close(copy) }
            throw ListenError(listener: listener, error)
        }
    }

    /// One descriptor for each loop. TCP listeners share the port; the descriptors of a Unix socket are copies of one.
    private static func bind(_ listener: ListenerDefinition, count: Int) throws -> [Int32] {
        var descriptors: [Int32] = []
        do {
            var address = listener.bind
            for _ in 0..<count {
                if case .unix = address, let first = descriptors.first {
                    descriptors.append(try Socket.copy(first))
                    continue
                }
                descriptors.append(try Socket.listen(on: address))
                if address.port == 0, let bound = Socket.localAddress(descriptors[0]) { address = bound }
            }
            return descriptors
        } catch {
            for descriptor in descriptors { Socket.close(descriptor) }
            throw ListenError(listener: listener, error)
        }
    }
}

/// An error: a listener cannot be bound.
public struct ListenError: Error, CustomStringConvertible {
    let listener: ListenerDefinition
    let reason: String

    init(listener: ListenerDefinition, reason: String) {
        self.listener = listener
        self.reason = reason
    }

    init(listener: ListenerDefinition, _ error: any Error) {
        self.init(listener: listener, reason: PortHolder.reason(error, listener.bind))
    }

    public var description: String { "\(listener.location): listeners.\(listener.name): \(sentence)" }

    /// The error without the place in the file.
    public var sentence: String { "cannot listen on \(listener.bind): \(reason)" }
}
