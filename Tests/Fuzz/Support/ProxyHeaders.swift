@testable import HttpWare

extension Fuzzing {
    /// A header of the PROXY protocol: read whole and byte by byte alike, never past its end, and written again as it was read.
    public static func proxyHeader(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        let bytes = Array(UnsafeBufferPointer(start: start, count: count))
        let (whole, used) = read(bytes, most: bytes.count)
        let (piecemeal, usedOfPieces) = read(bytes, most: 1)
        // An invalid header is refused as soon as that is sure.
        if case (.refused, .refused) = (whole, piecemeal) { return }
        require(
            whole == piecemeal && used == usedOfPieces, "whole \(whole) \(used), in pieces \(piecemeal) \(usedOfPieces)"
        )
        require(used <= ProxyHeaderDecoder.longest, "took \(used) bytes")
        guard case .whole(let proxied?) = whole else { return }
        for version in ProxyProtocol.allCases {
            let header = version.header(proxied)
            let (again, taken) = read(header + [0x47], most: header.count + 1)
            require(taken == header.count, "\(version) takes \(taken) of \(header.count) bytes")
            guard case .whole(let other?) = again else {
                require(false, "\(version) of \(proxied) is \(again)")
                return
            }
            require(
                other.client.unmapped == proxied.client.unmapped && other.server.unmapped == proxied.server.unmapped,
                "\(proxied) became \(other)")
        }
    }

    private static func read(_ bytes: [UInt8], most: Int) -> (ProxyHeaderDecoder.Step, Int) {
        var decoder = ProxyHeaderDecoder()
        var place = 0
        while place < bytes.count {
            let step = bytes[place..<min(bytes.count, place + most)].withUnsafeBytes { next in
                let count = decoder.count(of: next)
                require(count > 0 && count <= next.count, "\(count) of \(next.count) bytes")
                place += count
                return decoder.append(UnsafeRawBufferPointer(rebasing: next[..<count]))
            }
            if step != .incomplete { return (step, place) }
        }
        return (.incomplete, place)
    }
}
