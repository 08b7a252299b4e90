package import HttpWare

extension CapturedExchange {
    /// The response with the content that was kept, to send it again. Parts that were masked are unknown, and left out.
    package func replayed(isHead: Bool) -> HttpResponse {
        let message = response ?? CapturedMessage()
        var replayed = HttpResponse(HttpStatus(status ?? 200) ?? .ok)
        if isReasonRaw, let bytes = reason?.latin1 {
            replayed.receivedReasonBytes = bytes
        } else {
            replayed.receivedReason = reason
        }
        // Without content, the length is that of a response to GET. RFC 9110 §8.6.
        let isHeadOnly = isHead || replayed.status == .notModified
        replayed.fields = message.replayedFields(isHeadOnly: isHeadOnly)
        if isHeadOnly { return replayed }
        let trailers = CapturedMessage(fields: message.trailers).replayedFields()
        if !trailers.isEmpty {
            replayed.trailers = trailers
            // The names of the trailer fields, which stand before the content. RFC 9110 §6.6.2.
            for name in message.values(of: "trailer") { try? replayed.fields.append(.trailer, name) }
        }
        replayed.content = .bytes(message.content.kept)
        return replayed
    }
}

extension String {
    /// The bytes that the characters stand for in ISO 8859-1; `nil` if there are others.
    package var latin1: [UInt8]? {
        var bytes: [UInt8] = []
        for scalar in unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}

extension CapturedMessage {
    /// Fields of one connection, and fields that describe how the content was sent.
    private static let left: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "proxy-authenticate", "te", "trailer", "transfer-encoding",
        "upgrade", "content-length", "alt-svc",
    ]

    /// The fields, to send them again with the content that was kept, or without content.
    package func replayedFields(isHeadOnly: Bool = false) -> HttpFields {
        var replayed = HttpFields()
        for field in fields {
            let name = field.name.lowercased()
            // Masked values are unknown.
            if CapturedMessage.left.contains(name) && !(isHeadOnly && name == "content-length") || name.hasPrefix(":")
                || name == "content-encoding" && content.isDecoded && !isHeadOnly
                || field.value.hasSuffix(Redaction.mark)
            {
                continue
            }
            if let name = FieldName(field.name) { try? replayed.append(name, raw: field.bytes) }
        }
        return replayed
    }
}
