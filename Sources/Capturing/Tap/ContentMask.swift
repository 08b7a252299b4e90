import HttpWare

/// Masks the values of members that are named like credentials in content: of forms and of JSON, whole or cut off anywhere, in linear time.
enum ContentMask {
    /// What a content can be.
    enum Form { case form, json }

    static func form(of message: CapturedMessage) -> Form? {
        if message.content.kept.isEmpty { return nil }
        return message.fields.withFirstValue(of: "content-type") { form(ofType: $0) } ?? nil
    }

    /// By the media type without its parameters. RFC 9110 §8.3.1.
    private static func form(ofType value: UnsafeRawBufferPointer) -> Form? {
        var end = value.firstIndex(of: 0x3b) ?? value.count
        while end > 0, value[end - 1] <= 0x20 { end -= 1 }
        let type = UnsafeRawBufferPointer(rebasing: value[..<end])
        if CapturedFields.isSame(type, "application/x-www-form-urlencoded") { return .form }
        for name in ["application/json", "text/json", "application/x-ndjson", "application/jsonl"] as [StaticString]
        where CapturedFields.isSame(type, name) {
            return .json
        }
        guard type.count >= 5 else { return nil }
        return CapturedFields.isSame(UnsafeRawBufferPointer(rebasing: type[(type.count - 5)...]), "+json") ? .json : nil
    }

    /// The content with marks; `nil` where there is nothing to mask.
    static func masked(_ bytes: [UInt8], _ form: Form) -> [UInt8]? {
        var mask = Masking(bytes)
        switch form {
        case .form: mask.maskForm()
        case .json: mask.maskJson()
        }
        return mask.result
    }

    private struct Masking {
        private let bytes: [UInt8]
        private var output: [UInt8] = []
        private var copied = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var result: [UInt8]? { copied == 0 ? nil : output + bytes[copied...] }

        private mutating func replace(_ range: Range<Int>, by mark: [UInt8]) {
            guard !range.isEmpty else { return }
            output += bytes[copied..<range.lowerBound]
            output += mark
            copied = range.upperBound
        }

        // MARK: Forms

        mutating func maskForm() {
            let mark = Array(Redaction.mark.utf8)
            var start = 0
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: 0x26) ?? bytes.count
                if let equals = bytes[start..<end].firstIndex(of: 0x3d),
                    Redaction.isSecret(parameter: String(decoding: bytes[start..<equals], as: UTF8.self))
                {
                    replace(equals + 1..<end, by: mark)
                }
                start = end + 1
            }
        }

        // MARK: JSON

        mutating func maskJson() {
            let mark = Array("\"\(Redaction.mark)\"".utf8)
            var at = 0
            while let quote = bytes[at...].firstIndex(of: 0x22) {
                let end = endOfString(from: quote)
                var next = end
                skipSpace(&next)
                guard next < bytes.count, bytes[next] == 0x3a else {
                    at = end
                    continue
                }
                next += 1
                skipSpace(&next)
                guard isSecret(quote..<end) else {
                    at = next
                    continue
                }
                let last = endOfValue(from: next)
                replace(next..<last, by: mark)
                at = last
            }
        }

        /// Whether the name in quotes is like that of a credential.
        private func isSecret(_ quoted: Range<Int>) -> Bool {
            let name = bytes[quoted].dropFirst().dropLast()
            guard name.contains(0x5c) else {
                return Redaction.isSecret(parameter: String(decoding: name, as: UTF8.self))
            }
            // `pass\u0077ord` is a password too.
            let text = (try? JsonScanner.read(Array(bytes[quoted])))?.text
            return text.map { Redaction.isSecret(parameter: $0) } ?? true
        }

        private func skipSpace(_ at: inout Int) {
            while at < bytes.count, bytes[at] <= 0x20 { at += 1 }
        }

        /// Behind the closing quote, or the end of what there is.
        private func endOfString(from quote: Int) -> Int {
            var at = quote + 1
            while at < bytes.count, bytes[at] != 0x22 { at += bytes[at] == 0x5c ? 2 : 1 }
            return min(at + 1, bytes.count)
        }

        private func endOfValue(from start: Int) -> Int {
            var at = start
            var depth = 0
            while at < bytes.count {
                switch bytes[at] {
                case 0x22:
                    at = endOfString(from: at)
                    if depth == 0 { return at }
                    continue
                case 0x7b, 0x5b: depth += 1
                case 0x7d, 0x5d:
                    if depth == 0 { return at }
                    depth -= 1
                    if depth == 0 { return at + 1 }
                case 0x2c, 0...0x20: if depth == 0 { return at }
                default: break
                }
                at += 1
            }
            return at
        }
    }
}

extension CaptureRedaction {
    /// Masks members of a message's content that are named like credentials. Content in a coding is decoded for it, where there are some.
    /// Returns the content as it was; `nil` if nothing was masked.
    func maskContent(_ message: inout CapturedMessage, limit: Int) -> CapturedContent? {
        guard !showsAll, !message.content.kept.isEmpty, message.content.maskedFrom == nil,
            let form = ContentMask.form(of: message)
        else { return nil }
        let original = message.content
        let isCoded = !original.isDecoded && !message.values(of: "content-encoding").isEmpty
        let bytes = isCoded ? DecodedContent(message, limit: limit).bytes : original.kept
        guard let masked = ContentMask.masked(bytes, form) else { return nil }
        message.content.kept = masked
        message.content.maskedFrom = original.kept.count
        if isCoded { message.content.isDecoded = true }
        return original
    }
}
