import HttpWare

/// The variables of nginx as far as placeholders can say them.
struct NginxVariables: Sendable {
    /// A piece of a text: fixed, or a variable by its name.
    enum Piece: Hashable, Sendable {
        case text(String)
        case variable(String)
    }

    /// Variables that `set` gave a fixed value; `nil` if it is not known.
    var known: [String: String?] = [:]
    /// The first name of the server.
    var serverName: String?
    /// `http` or `https`, if all listeners of the server use it.
    var scheme: String?
    /// The port, if the server has one.
    var port: String?
    /// Whether the address of the client is the one that nginx would see.
    var hasClientAddress = true

    /// The pieces of a text; variables with a known value are fixed text.
    func pieces(_ text: String) -> [Piece] {
        var pieces: [Piece] = []
        var fixed: [UInt8] = []
        let bytes = Array(text.utf8)
        var index = 0
        func isName(_ byte: UInt8) -> Bool {
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "_")
        }
        func flush() {
            if !fixed.isEmpty { pieces.append(.text(String(decoding: fixed, as: UTF8.self))) }
            fixed = []
        }
        while index < bytes.count {
            guard bytes[index] == UInt8(ascii: "$"), index + 1 < bytes.count else {
                fixed.append(bytes[index])
                index += 1
                continue
            }
            var start = index + 1
            let isBraced = bytes[start] == UInt8(ascii: "{")
            if isBraced { start += 1 }
            var end = start
            while end < bytes.count, isName(bytes[end]) { end += 1 }
            // `$1` is one digit, as in nginx.
            if !isBraced, start < bytes.count, (0x31...0x39).contains(bytes[start]) { end = start + 1 }
            guard end > start, !isBraced || end < bytes.count && bytes[end] == UInt8(ascii: "}") else {
                fixed.append(bytes[index])
                index += 1
                continue
            }
            let name = String(decoding: bytes[start..<end], as: UTF8.self)
            index = isBraced ? end + 1 : end
            if let value = value(of: name) {
                fixed += Array(value.utf8)
            } else {
                flush()
                pieces.append(.variable(name))
            }
        }
        flush()
        // Fixed pieces that follow each other are one.
        return pieces.reduce(into: []) { result, piece in
            if case .text(let text) = piece, case .text(let before)? = result.last {
                result[result.count - 1] = .text(before + text)
            } else {
                result.append(piece)
            }
        }
    }

    /// The fixed value of a variable; `nil` if it differs between requests, or is not known.
    private func value(of name: String) -> String? {
        if let known = known[name] { return known }
        switch name {
        case "server_name": return serverName
        case "scheme": return scheme
        case "server_port": return port
        default: return nil
        }
    }

    /// The text if it has no variables.
    func fixed(_ text: String) -> String? {
        let pieces = pieces(text)
        if pieces.isEmpty { return "" }
        guard pieces.count == 1, case .text(let text)? = pieces.first else { return nil }
        return text
    }

    /// The names of the variables that no placeholder can say.
    func unknown(in text: String) -> [String] {
        pieces(text).compactMap { piece in
            if case .variable(let name) = piece, placeholder(name) == nil { name } else { nil }
        }
    }

    /// The text as a template; `nil` if a variable has no placeholder.
    func template(_ text: String) -> String? {
        var result = ""
        for piece in pieces(text) {
            switch piece {
            case .text(let text): result += Template.literal(text)
            case .variable(let name):
                guard let placeholder = placeholder(name) else { return nil }
                result += "{\(placeholder)}"
            }
        }
        return result
    }

    /// The text as content with placeholders; `nil` if a variable has no placeholder.
    func content(_ text: String) -> String? {
        var result = ""
        for piece in pieces(text) {
            switch piece {
            case .text(let text): result += ContentTemplate.literal(text)
            case .variable(let name):
                guard let placeholder = placeholder(name) else { return nil }
                result += "{\(placeholder)}"
            }
        }
        return result
    }

    /// The placeholder for a variable of nginx.
    private func placeholder(_ name: String) -> String? {
        if known.keys.contains(name) { return nil }
        switch name {
        case "host": return "request.host"
        case "http_host": return "request.header.Host"
        case "remote_addr": return hasClientAddress ? "client.ip" : nil
        case "realip_remote_addr": return "peer.ip"
        case "uri", "document_uri": return "request.path"
        case "request_method": return "request.method"
        case "request_id": return "exchange.id"
        case "remote_user": return "principal"
        case "ssl_client_s_dn": return "tls.subject"
        default: break
        }
        if name.hasPrefix("http_"), name != "http_" { return "request.header.\(Self.fieldName(name.dropFirst(5)))" }
        if name.hasPrefix("arg_"), name != "arg_" { return "request.query.\(name.dropFirst(4))" }
        return nil
    }

    /// The field of `$http_x_name`: `X-Name`.
    static func fieldName(_ text: some StringProtocol) -> String {
        text.split(separator: "_", omittingEmptySubsequences: false)
            .map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
    }
}
