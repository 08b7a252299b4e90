package import HttpWare

extension Template {
    /// The target as a URI reference with a fixed host. Values are percent-encoded; values from the request target keep their
    /// encoding. `nil` if the result is not such a reference. For templates without a `redirectProblem`.
    package func location(_ request: HttpRequest, in exchange: Exchange) -> String? {
        var location: [UInt8] = []
        var isQuery = false
        for segment in segments {
            switch segment {
            case .text(let bytes):
                location += bytes
                isQuery = isQuery || bytes.contains(UInt8(ascii: "?"))
            // The host was checked when the request was read.
            case .placeholder(.requestHost): location += (request.host ?? "").utf8
            case .placeholder(let placeholder):
                let value = placeholder.value(request, in: exchange)
                Template.append(value, of: placeholder, isQuery: isQuery, to: &location)
            }
        }
        let text = String(decoding: location, as: UTF8.self)
        if source.hasPrefix("http://") || source.hasPrefix("https://") { return text }
        // Browsers treat a backslash as a slash, and two slashes as the beginning of a host.
        return text.hasPrefix("/") ? "/" + text.drop { $0 == "/" || $0 == "\\" } : nil
    }

    private static func append(
        _ value: String, of placeholder: Placeholder, isQuery: Bool, to location: inout [UInt8]
    ) {
        var isEncoded = false
        // Characters that stay unchanged in a path. In a query they separate parameters, and a plus means a space.
        var kept: [UInt8] = isQuery ? [] : Array("&;+".utf8)
        switch placeholder {
        case .requestPath, .path: isEncoded = true
        case .requestQuery:
            isEncoded = true
            kept.append(UInt8(ascii: "+"))
        default: break
        }
        let bytes = Array(value.utf8)
        for index in bytes.indices {
            let byte = bytes[index]
            let isEscape =
                isEncoded && byte == UInt8(ascii: "%") && Hex.byte(bytes[...], at: index + 1) != nil
            if isEscape || isPlain(byte) || kept.contains(byte) {
                location.append(byte)
            } else {
                PercentText.append(byte, to: &location)
            }
        }
    }

    /// Whether the byte is allowed in the path and in the query of a URI, and is not a separator. RFC 3986 §3.3, §3.4.
    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "-._~/:@!$'()*,=".utf8.contains(byte)
        }
    }
}
