import HttpWare

/// Content for a message, as it was received.
struct CalloutContent: Sendable {
    let bytes: [UInt8]
    /// The members of `Content-Encoding`.
    let codings: [String]
    /// The most bytes, decoded.
    let limit: Int

    /// The content without its codings. Throws if that fails, or if it is larger than the limit.
    func decoded() throws(CalloutFault) -> [UInt8] {
        guard let decoder = ContentDecoder(codings) else {
            throw CalloutFault(.content, "the content has a coding that cannot be decoded")
        }
        guard !decoder.isIdentity else {
            guard bytes.count <= limit else { throw tooLarge }
            return bytes
        }
        var decoded: [UInt8] = []
        do {
            guard try decoder.decode(bytes, into: &decoded, upTo: limit) else { throw tooLarge }
            try decoder.finish()
        } catch let fault as CalloutFault {
            throw fault
        } catch {
            throw CalloutFault(.content, "\(error)")
        }
        return decoded
    }

    private var tooLarge: CalloutFault { CalloutContent.tooLarge(limit) }

    /// The content has more bytes than the program asked for.
    static func tooLarge(_ limit: Int) -> CalloutFault {
        CalloutFault(.content, "the content is larger than \(ByteCount.bytes(limit).optionText)")
    }

    /// Writes the member `content`: as text if that shows all of it.
    static func write(_ bytes: [UInt8], to writer: inout JsonWriter) {
        writer.object("content") { writer in
            // Strict readers of JSON refuse NUL in a text.
            if String(validating: bytes, as: UTF8.self) != nil, !bytes.contains(0) {
                writer.text("text", utf8: bytes)
            } else {
                writer.text("base64", Base64.encode(bytes))
            }
        }
    }

    /// Reads the member `content` of an answer.
    static func read(_ value: JsonValue, at path: String) throws(CalloutFault) -> [UInt8] {
        guard let member = value.members?.only else {
            throw .wrong("\(path) must be an object with either text or base64")
        }
        switch (member.name, member.value) {
        case ("text", .string(let text)): return Array(text.utf8)
        case ("base64", .string(let text)):
            guard let bytes = Base64.decode(text.utf8) else { throw .wrong("\(path).base64 is not valid base64") }
            return bytes
        case ("text", _), ("base64", _): throw .wrong("\(path).\(member.name) must be a text")
        default: throw .wrong("\(path) has an unknown member \(member.name.quotedForErrors); write text or base64")
        }
    }
}

extension Array {
    /// The element of a list of one; `nil` for any other list.
    fileprivate var only: Element? { count == 1 ? first : nil }
}
