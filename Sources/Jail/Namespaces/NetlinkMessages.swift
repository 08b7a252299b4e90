/// The messages that change addresses and routes of the loopback in a new network namespace: rtnetlink(7).
///
/// Every address is this machine: a connection to any host reaches the listeners inside, and `getsockname` tells which host was meant.
enum NetlinkMessages {
    /// Numbers of `<linux/netlink.h>` and `<linux/rtnetlink.h>`.
    private enum Kind {
        static let newLink: UInt16 = 16
        static let newAddress: UInt16 = 20
        static let newRoute: UInt16 = 24
        static let isRequest: UInt16 = 0x1
        static let wantsAnswer: UInt16 = 0x4
        static let creates: UInt16 = 0x400
    }

    /// The families of addresses.
    private static let four: UInt8 = 2
    private static let six: UInt8 = 10
    /// The loopback has this number in every network namespace.
    private static let loopback: UInt32 = 1

    /// All messages, in order: the loopback goes up, gets an address of each family that is not a loopback's, and all routes.
    ///
    /// Programs that look for such an address before they use a family, as `getaddrinfo` does, would find none.
    static var all: [UInt8] {
        linkUp + address(four, 32, SyntheticNames.own4) + address(six, 128, SyntheticNames.own6) + route(four)
            + route(six)
    }

    /// `ip link set lo up`
    static var linkUp: [UInt8] {
        let isUp: UInt32 = 1
        return message(Kind.newLink, 0, [0, 0] + bytes(UInt16(0)) + bytes(loopback) + bytes(isUp) + bytes(isUp))
    }

    /// `ip address add ADDRESS dev lo`
    private static func address(_ family: UInt8, _ prefix: UInt8, _ address: [UInt8]) -> [UInt8] {
        // IFA_F_NODAD: the address can be used at once.
        let flags: UInt8 = family == six ? 2 : 0
        return message(
            Kind.newAddress, Kind.creates,
            [family, prefix, flags, 0] + bytes(loopback) + attribute(2, address) + attribute(1, address))
    }

    /// `ip route add local 0.0.0.0/0 dev lo`, or the same for `::/0`.
    static func route(_ family: UInt8) -> [UInt8] {
        // The table of local routes, made by an administrator, in the scope of the host, for addresses of this machine.
        let (table, maker, scope, kind): (UInt8, UInt8, UInt8, UInt8) = (255, 4, family == six ? 0 : 254, 2)
        return message(
            Kind.newRoute, Kind.creates,
            [family, 0, 0, 0, table, maker, scope, kind] + bytes(UInt32(0)) + attribute(4, bytes(loopback)))
    }

    private static func message(_ kind: UInt16, _ flags: UInt16, _ body: [UInt8]) -> [UInt8] {
        let flags = flags | Kind.isRequest | Kind.wantsAnswer
        let head = bytes(UInt32(16 + body.count)) + bytes(kind) + bytes(flags) + bytes(UInt32(1)) + bytes(UInt32(0))
        return padded(head + body)
    }

    private static func attribute(_ kind: UInt16, _ value: [UInt8]) -> [UInt8] {
        padded(bytes(UInt16(4 + value.count)) + bytes(kind) + value)
    }

    /// Messages and attributes begin at multiples of four.
    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }

    /// In the order of the machine's bytes.
    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }
}
