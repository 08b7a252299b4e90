@testable import HttpWare

extension Fuzzing {
    /// The first bytes behind a CONNECT, and a client of SOCKS5: read whole and byte by byte alike, and never taken for something
    /// else when more comes.
    public static func tunnelBytes(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        let bytes = Array(UnsafeBufferPointer(start: start, count: count))
        let whole = TunnelProtocol.of(bytes)
        var first: TunnelProtocol?
        for length in 0...bytes.count {
            let found = TunnelProtocol.of(Array(bytes[..<length]))
            guard found != .unknown else {
                require(first == nil, "known with fewer bytes, unknown with \(length)")
                continue
            }
            if let first {
                require(first == found, "\(first) became \(found) with \(length) bytes")
            } else {
                first = found
            }
        }
        require(whole == first ?? .unknown, "whole it is \(whole), in pieces \(String(describing: first))")
        if case .tls(let name?) = whole {
            require(Authority(name)?.host == name && Authority(name)?.port == nil, "\(name) is no host")
        }
        for demandsPassword in [false, true] { socks(bytes, demandsPassword) }
    }

    private static func socks(_ bytes: [UInt8], _ demandsPassword: Bool) {
        var whole = SocksDecoder(demandsPassword: demandsPassword)
        var place = 0
        var steps: [SocksDecoder.Step] = []
        while true {
            let step = whole.next(bytes, from: &place)
            if step == .incomplete { break }
            steps.append(step)
            if case .reply = step { continue }
            break
        }
        var piecemeal = SocksDecoder(demandsPassword: demandsPassword)
        var start = 0
        var others: [SocksDecoder.Step] = []
        feeding: for length in 0...bytes.count {
            while true {
                var position = start
                let step = piecemeal.next(Array(bytes[..<length]), from: &position)
                if step == .incomplete { continue feeding }
                others.append(step)
                start = position
                guard case .reply = step else { break feeding }
            }
        }
        require(steps == others, "whole \(steps), in pieces \(others)")
        if case .request(let authority)? = steps.last {
            require(authority.port != nil && (try? HttpRequest(.connect, authority.description)) != nil, "\(authority)")
        }
    }
}
