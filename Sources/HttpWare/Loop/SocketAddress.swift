package import Glibc

/// The address that a socket listens on or connects to: an IP address and a port, or the path of a Unix socket.
public enum SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// An IP address and a TCP port.
    case ip(IPAddress, port: UInt16)

    /// The path of a Unix socket; empty for the unnamed end of a connection.
    case unix(path: String)

    /// Reads `192.0.2.1:80`, `[2001:db8::1]:80` or `unix:/run/app.sock`; `nil` for anything else. Names are not resolved.
    ///
    /// With a default port, the port may be missing, and then also the brackets.
    public init?(_ text: String, defaultPort: UInt16? = nil) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard (1...SocketAddress.longestPath).contains(path.utf8.count), !path.utf8.contains(0) else { return nil }
            self = .unix(path: path)
            return
        }
        if let defaultPort, let address = IPAddress(text) {
            self = .ip(address, port: defaultPort)
            return
        }
        let host: Substring
        let rest: Substring
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<bracket]
            rest = text[text.index(after: bracket)...]
        } else {
            let colon = text.firstIndex(of: ":") ?? text.endIndex
            host = text[..<colon]
            rest = text[colon...]
        }
        guard let address = IPAddress(host), address.isIPv4 != text.hasPrefix("[") else { return nil }
        if rest.isEmpty, let defaultPort {
            self = .ip(address, port: defaultPort)
            return
        }
        let digits = rest.dropFirst()
        guard rest.first == ":", digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let port = UInt16(digits)
        else { return nil }
        self = .ip(address, port: port)
    }

    /// The maximum length of a Unix socket's path, in bytes.
    public static let longestPath = 107

    /// Any free port of 127.0.0.1.
    public static let loopback = SocketAddress.ip(IPAddress(ipv4: 0x7f00_0001), port: 0)

    /// The IP address; `nil` for a Unix socket.
    public var address: IPAddress? {
        if case .ip(let address, _) = self { address } else { nil }
    }

    /// The TCP port; `nil` for a Unix socket.
    public var port: UInt16? {
        if case .ip(_, let port) = self { port } else { nil }
    }

    /// Whether only this host can reach it: a loopback address or a Unix socket.
    public var isLoopback: Bool { address?.isLoopback ?? true }

    /// Whether untrusted clients must not reach it through a gateway: see `IPAddress.isPrivate`; always true for a Unix socket.
    public var isPrivate: Bool { address?.isPrivate ?? true }

    /// Whether a cloud's metadata service has this address: see `IPAddress.isMetadata`.
    public var isMetadata: Bool { address?.isMetadata ?? false }

    /// The same with an IPv4-mapped address, as sockets for both families report it, replaced by the IPv4 address.
    public var unmapped: SocketAddress {
        if case .ip(let address, let port) = self { .ip(address.unmapped, port: port) } else { self }
    }

    /// The same address with another port; a Unix socket is unchanged.
    public func with(port: UInt16) -> SocketAddress {
        if case .ip(let address, _) = self { .ip(address, port: port) } else { self }
    }

    /// The address in the form that `init(_:defaultPort:)` reads.
    public var description: String {
        switch self {
        case .ip(let address, let port): address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }

    // MARK: The system's structures

    /// The system's number of the address family.
    var family: Int32 {
        switch self {
        case .ip(let address, _): address.isIPv4 ? AF_INET : AF_INET6
        case .unix: AF_UNIX
        }
    }

    /// Reads the system's structure; `nil` for an unsupported family, or if the length is too short.
    init?(_ pointer: UnsafeRawPointer, length: Int) {
        guard length >= MemoryLayout<sa_family_t>.size else { return nil }
        switch Int32(pointer.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            let address = pointer.loadUnaligned(as: sockaddr_in.self)
            self = .ip(
                IPAddress(ipv4: UInt32(bigEndian: address.sin_addr.s_addr)), port: UInt16(bigEndian: address.sin_port))
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            let address = pointer.loadUnaligned(as: sockaddr_in6.self)
            self = .ip(
                IPAddress(address.sin6_addr, scope: address.sin6_scope_id), port: UInt16(bigEndian: address.sin6_port))
        case AF_UNIX:
            let bytes = UnsafeRawBufferPointer(start: pointer, count: length).dropFirst(SocketAddress.pathOffset)
            self = .unix(path: String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
        default: return nil
        }
    }

    /// Passes the system's structure and its length, valid during the call.
    package func withSystemAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var storage = sockaddr_storage()
        return withUnsafeMutableBytes(of: &storage) { bytes in
            let length: Int
            switch self {
            case .ip(let address, let port) where address.isIPv4:
                var ipv4 = sockaddr_in()
                ipv4.sin_family = sa_family_t(AF_INET)
                ipv4.sin_port = port.bigEndian
                ipv4.sin_addr.s_addr = UInt32(truncatingIfNeeded: address.low).bigEndian
                bytes.storeBytes(of: ipv4, as: sockaddr_in.self)
                length = MemoryLayout<sockaddr_in>.size
            case .ip(let address, let port):
                var ipv6 = sockaddr_in6()
                ipv6.sin6_family = sa_family_t(AF_INET6)
                ipv6.sin6_port = port.bigEndian
                ipv6.sin6_addr = address.in6
                ipv6.sin6_scope_id = address.scope
                bytes.storeBytes(of: ipv6, as: sockaddr_in6.self)
                length = MemoryLayout<sockaddr_in6>.size
            case .unix(let path):
                bytes.storeBytes(of: sa_family_t(AF_UNIX), as: sa_family_t.self)
                let room = UnsafeMutableRawBufferPointer(rebasing: bytes.dropFirst(SocketAddress.pathOffset))
                // The storage is zeroed, so the path is terminated; a longer path is cut, and refused where it is read or bound.
                let path = path.utf8.prefix(SocketAddress.longestPath)
                room.copyBytes(from: path)
                length = SocketAddress.pathOffset + path.count + 1
            }
            // Rebound for the call only: the storage is large enough and aligned for every address structure.
            return bytes.withMemoryRebound(to: sockaddr.self) { addresses in
                addresses.baseAddress.map { body(UnsafePointer($0), socklen_t(length)) }
            }
        }!  // sockaddr_storage is not empty, so it has a base address
    }

    private static let pathOffset = MemoryLayout<sa_family_t>.size
}
