/// The ports and names that a program behind a wall can reach.
public struct JailPlan: Sendable, Equatable {
    /// The ports of all hosts, which lead to the gateway.
    public var ports: [UInt16]
    /// Whether names are answered; otherwise each query is refused.
    public var answersNames: Bool
    /// The ports of the program's own loopback that lead to this machine's.
    public var exposed: [UInt16]

    /// Makes a plan.
    public init(ports: [UInt16], answersNames: Bool, exposed: [UInt16]) {
        self.ports = ports
        self.answersNames = answersNames
        self.exposed = exposed
    }

    /// A listener inside.
    struct Listener: Equatable {
        enum Purpose: Equatable {
            case host, datagramNames, streamNames
            /// At 127.0.0.1, or at ::1.
            case exposed(port: UInt16, isIPv4: Bool)
        }

        let port: UInt16
        let purpose: Purpose
    }

    private static let dns: UInt16 = 53

    /// The listeners inside, in the order of their descriptors.
    var listeners: [Listener] {
        ports.map { Listener(port: $0, purpose: .host) }
            + [
                Listener(port: JailPlan.dns, purpose: .datagramNames),
                Listener(port: JailPlan.dns, purpose: .streamNames),
            ]
            + exposed.flatMap { port in
                [true, false].map { Listener(port: port, purpose: .exposed(port: port, isIPv4: $0)) }
            }
    }
}
