import Glibc
import HttpWare

/// Masks the values of credential-like members in content, complete or cut off, in linear time. It reads forms and their parts,
/// JSON, and JSON in events. Content whose media type is missing, unknown or wrong is searched by its shape.
enum ContentMask {
    /// The forms of content in which values are masked.
    enum Form: Equatable {
        case form, json, events
        /// Parts between lines with this boundary. RFC 2046 §5.1.
        case parts(boundary: [UInt8])
    }

    /// A place where a mark replaces a value.
    struct Mark {
        /// How the mark is written.
        enum Style: Equatable {
            case plain
            /// As a JSON value, with this number of backslashes before each quote.
            case quoted(backslashes: Int)
        }

        var range: Range<Int>
        let style: Style

        /// The bytes of the mark.
        var text: [UInt8] {
            guard case .quoted(let count) = style else { return Mark.plain }
            let quote = [UInt8](repeating: 0x5c, count: count) + [0x22]
            return quote + Mark.plain + quote
        }

        private static let plain = Array(Redaction.mark.utf8)
    }

    static func form(of message: CapturedMessage) -> Form? {
        if message.content.kept.isEmpty { return nil }
        return message.fields.withFirstValue(of: "content-type") { form(ofType: $0) } ?? nil
    }

    static func form(ofType value: String) -> Form? {
        var value = value
        return value.withUTF8 { form(ofType: UnsafeRawBufferPointer($0)) }
    }

    /// The form by the media type. RFC 9110 §8.3.1.
    private static func form(ofType value: UnsafeRawBufferPointer) -> Form? {
        var end = value.firstIndex(of: 0x3b) ?? value.count
        while end > 0, value[end - 1] <= 0x20 { end -= 1 }
        let start = value[..<end].firstIndex { $0 > 0x20 } ?? end
        let type = UnsafeRawBufferPointer(rebasing: value[start..<end])
        func ends(_ suffix: StaticString) -> Bool {
            let count = suffix.utf8CodeUnitCount
            return type.count >= count
                && CapturedFields.isSame(UnsafeRawBufferPointer(rebasing: type[(type.count - count)...]), suffix)
        }
        func begins(_ prefix: StaticString) -> Bool {
            CapturedFields.isSame(UnsafeRawBufferPointer(rebasing: type.prefix(prefix.utf8CodeUnitCount)), prefix)
        }
        if CapturedFields.isSame(type, "application/x-www-form-urlencoded") { return .form }
        if CapturedFields.isSame(type, "text/event-stream") { return .events }
        if begins("multipart/") {
            let boundary = FieldParameters.value(of: "boundary", in: Array(value)[...])
            return boundary.flatMap { $0.isEmpty ? nil : .parts(boundary: $0) }
        }
        for name in ["application/json", "text/json", "application/x-ndjson", "application/jsonl"] as [StaticString]
        where CapturedFields.isSame(type, name) {
            return .json
        }
        return ends("+json") ? .json : nil
    }

    /// Whether the media type is that of scripts or style sheets.
    private static func isCode(_ message: CapturedMessage) -> Bool {
        message.fields.withFirstValue(of: "content-type") { value in
            for type in ["text/javascript", "application/javascript", "application/x-javascript", "text/css"]
                as [StaticString]
            where CapturedFields.isMediaType(value, type) {
                return true
            }
            return false
        } ?? false
    }

    /// The message's content, of which `bytes` is the decoded form, with its values masked; `nil` if there is nothing to mask.
    static func masked(_ bytes: [UInt8], of message: CapturedMessage) -> [UInt8]? {
        masked(bytes, allMarks(in: bytes, form(of: message), isCode: isCode(message)))
    }

    /// The content with its values masked; `nil` if there is nothing to mask.
    static func masked(_ bytes: [UInt8], _ form: Form) -> [UInt8]? { masked(bytes, marks(in: bytes, form)) }

    /// The values to mask, by the form that the media type says, and by the shape of the content.
    static func allMarks(in bytes: [UInt8], _ form: Form?, isCode: Bool = false) -> [Mark] {
        // Events have a syntax of their own, which other readers would damage.
        if form == .events { return eventMarks(in: bytes) }
        var marks = ShapeMarks.marks(in: bytes, isCode: isCode)
        if let form { marks += self.marks(in: bytes, form) }
        if let boundary = MultipartReader.boundary(in: bytes), form != .parts(boundary: boundary) {
            marks += partMarks(in: bytes, boundary, depth: 0)
        }
        return joined(marks)
    }

    /// The marks in the order of their places, of which none overlaps another one.
    static func joined(_ marks: [Mark]) -> [Mark] {
        guard marks.count > 1 else { return marks }
        var joined: [Mark] = []
        let sorted = marks.sorted {
            ($0.range.lowerBound, $1.range.upperBound) < ($1.range.lowerBound, $0.range.upperBound)
        }
        for mark in sorted {
            guard let last = joined.last, mark.range.lowerBound < last.range.upperBound else {
                joined.append(mark)
                continue
            }
            let end = max(last.range.upperBound, mark.range.upperBound)
            joined[joined.count - 1].range = last.range.lowerBound..<end
        }
        return joined
    }

    fileprivate static func masked(_ bytes: [UInt8], _ marks: [Mark]) -> [UInt8]? {
        guard !marks.isEmpty else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var copied = 0
        for mark in marks {
            output += bytes[copied..<mark.range.lowerBound]
            output += mark.text
            copied = mark.range.upperBound
        }
        return output + bytes[copied...]
    }

    /// The data of a WebSocket message or an event, with its values masked; `nil` if nothing is masked. For messages of gRPC
    /// this is always `nil`, because a mark would change their lengths.
    static func maskedData(_ piece: CapturedPiece) -> [UInt8]? {
        switch piece.form {
        // Some programs send JSON in binary messages.
        case .webSocket(opcode: 1), .webSocket(opcode: 2), .event: masked(piece.data, allMarks(in: piece.data, .json))
        default: nil
        }
    }

    /// The values to mask, in the order of their places.
    static func marks(in bytes: [UInt8], _ form: Form, depth: Int = 0) -> [Mark] {
        switch form {
        case .form: return formMarks(in: bytes)
        case .json:
            guard JsonMarks.mayBeThere(in: bytes) else { return [] }
            var json = JsonMarks(bytes)
            return json.find()
        case .events: return eventMarks(in: bytes)
        case .parts(let boundary): return partMarks(in: bytes, boundary, depth: depth)
        }
    }

    private static func formMarks(in bytes: [UInt8]) -> [Mark] {
        var marks: [Mark] = []
        var start = 0
        while start < bytes.count {
            let end = bytes[start...].firstIndex(of: 0x26) ?? bytes.count
            if let equals = bytes[start..<end].firstIndex(of: 0x3d), equals + 1 < end,
                Redaction.isSecret(parameter: String(decoding: bytes[start..<equals], as: UTF8.self))
            {
                marks.append(Mark(range: equals + 1..<end, style: .plain))
            }
            start = end + 1
        }
        return marks
    }
}

/// Masks credential-like values in a text of any form, such as a comment.
public enum TextMask {
    /// The text with marks. A mark can take the place of several lines.
    public static func masked(_ text: String) -> String {
        let bytes = Array(text.utf8)
        return ContentMask.masked(bytes, ContentMask.allMarks(in: bytes, nil)).map {
            String(decoding: $0, as: UTF8.self)
        } ?? text
    }
}

/// Finds values in JSON, or in text that resembles JSON.
struct JsonMarks {
    private let bytes: [UInt8]
    private var marks: [ContentMask.Mark] = []

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Whether `find` may find something. Most content has no such name, and reading only the names takes a tenth of the time.
    static func mayBeThere(in bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return false }
            var at = 0
            while let found = memchr(base + at, 0x3a, bytes.count - at) {
                let colon = UnsafeRawPointer(found) - UnsafeRawPointer(base)
                at = colon + 1
                var end = colon - 1
                while end >= 0, bytes[end] <= 0x20 { end -= 1 }
                guard end >= 0, bytes[end] == 0x22 else { continue }
                var start = end - 1
                while start >= 0, bytes[start] != 0x22, bytes[start] != 0x5c { start -= 1 }
                // With a backslash the name may begin further ahead, or be written with escapes.
                guard start >= 0, bytes[start] == 0x22, start == 0 || bytes[start - 1] != 0x5c else { return true }
                if Redaction.isSecret(UnsafeBufferPointer(rebasing: bytes[start + 1..<end])) { return true }
            }
            return false
        }
    }

    mutating func find() -> [ContentMask.Mark] {
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
            if last > next { marks.append(ContentMask.Mark(range: next..<last, style: .quoted(backslashes: 0))) }
            at = last
        }
        return marks
    }

    /// Whether a quoted name looks like the name of a credential.
    private func isSecret(_ quoted: Range<Int>) -> Bool {
        let name = bytes[quoted].dropFirst().dropLast()
        guard name.contains(0x5c) else {
            return Redaction.isSecret(parameter: String(decoding: name, as: UTF8.self))
        }
        // `pass\u0077ord` is a password too.
        let text = (try? JsonValue(bytes[quoted], rules: .lenient))?.string
        return text.map { Redaction.isSecret(parameter: $0) } ?? true
    }

    private func skipSpace(_ at: inout Int) {
        while at < bytes.count, bytes[at] <= 0x20 { at += 1 }
    }

    /// The position after the closing quote, or the end of the text.
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

extension CaptureRedaction {
    /// A message with its values masked. The original of an event is not kept here, because the exchange's content
    /// contains it.
    func masked(_ piece: CapturedPiece, keepsOriginal: Bool) -> CapturedPiece {
        guard !showsAll, !piece.isMasked, let data = ContentMask.maskedData(piece) else { return piece }
        var masked = piece
        masked.isMasked = true
        masked.data = data
        if keepsOriginal, case .webSocket = piece.form { masked.original = piece.data }
        return masked
    }

    /// Masks credential-like members of a message's content. Coded content is decoded if it has such members. Returns the
    /// original content; `nil` if nothing was masked.
    func maskContent(_ message: inout CapturedMessage, limit: Int) -> CapturedContent? {
        guard !showsAll, !message.content.kept.isEmpty, message.content.maskedFrom == nil else { return nil }
        let original = message.content
        let isCoded =
            !original.isDecoded && message.fields.withFirstValue(of: "content-encoding") { !$0.isEmpty } ?? false
        let bytes = isCoded ? DecodedContent(message, limit: limit).bytes : original.kept
        guard let masked = ContentMask.masked(bytes, of: message) else { return nil }
        message.content.kept = masked
        message.content.maskedFrom = original.kept.count
        if isCoded { message.content.isDecoded = true }
        return original
    }
}
