import Glibc
import HttpWare

/// The addresses of this machine's network interfaces.
enum MachineAddresses {
    /// All of them, as they are now; empty if the system does not say.
    static var all: Set<IPAddress> {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var found: Set<IPAddress> = []
        var next = first
        while let entry = next {
            next = entry.pointee.ifa_next
            guard let pointer = entry.pointee.ifa_addr else { continue }
            let family = Int32(pointer.pointee.sa_family)
            let size = family == AF_INET6 ? MemoryLayout<sockaddr_in6>.size : MemoryLayout<sockaddr_in>.size
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            guard family == AF_INET || family == AF_INET6,
                getnameinfo(pointer, socklen_t(size), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
            else { continue }
            // A link-local address is named with its interface.
            let bytes = text.prefix { $0 != 0 && $0 != 0x25 }.map { UInt8(bitPattern: $0) }
            if let address = IPAddress(String(decoding: bytes, as: UTF8.self)) { found.insert(address.unmapped) }
        }
        return found
    }
}
