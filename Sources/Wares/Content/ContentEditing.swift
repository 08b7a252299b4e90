public import HttpWare

/// What a ware that edits content does with a message that it cannot edit.
public enum EditingFailure: String, OptionWord {
    /// The message goes on as it is, and the record says why.
    case pass
    /// The message is refused.
    case refuse
}

/// Why content cannot be edited.
enum EditingFault: Error, CustomStringConvertible {
    case tooLarge(Int)
    case unknownCoding
    /// The content is broken, or does not fit the edits.
    case malformed(String)

    var description: String {
        switch self {
        case .tooLarge(let limit): "the content is larger than \(limit) bytes"
        case .unknownCoding: "the content has a coding that cannot be decoded"
        case .malformed(let reason): reason
        }
    }
}

/// Edits the content of messages as a whole: takes content codings off, lets it be edited, and applies the coding again.
///
/// Fields that describe the content are true afterwards, or gone.
struct ContentEditing: Sendable {
    /// The media types of content that is edited.
    let types: [MediaPattern]
    /// The most bytes of content, without its coding and before and after the edit.
    let maxBody: Int
    let onFailure: EditingFailure
    private let pool = EncoderPool(level: 4, most: 256)

    init(types: [MediaPattern], maxBody: ByteCount, onFailure: EditingFailure) {
        self.types = types
        self.maxBody = maxBody.bytes
        self.onFailure = onFailure
    }

    /// Events are meant only where they are named: they come for as long as the client listens.
    private func mean(_ type: String) -> Bool {
        types.contains { $0.matches(type) && ($0.isExact || type != ContentEditing.events) }
    }

    static let events = "text/event-stream"

    // MARK: Which messages

    /// Whether the content of a request is edited, however large it is.
    func concerns(_ request: HttpRequest) -> Bool {
        // The content of such a request is a part. RFC 9110 §14.5.
        !request.content.isEmpty && request.upgrade == nil && !request.fields.contains(.contentRange)
            && mean(request.fields.mediaType)
    }

    /// What is edited of a response.
    enum Extent { case nothing, fields, content }

    /// What is edited of a response: its content; of one to HEAD, and of 304, the fields that tell of it.
    func extent(_ response: HttpResponse, in exchange: Exchange) -> Extent {
        guard exchange.responder != .gateway, response.status.code >= 200,
            ![204, 205, 206].contains(response.status.code), let request = exchange.request,
            request.method != .connect, !response.fields.contains(.contentRange),
            !response.fields.forbidsTransform
        else { return .nothing }
        if response.status == .notModified {
            return !response.fields.contains(.contentType) || mean(response.fields.mediaType) ? .fields : .nothing
        }
        guard mean(response.fields.mediaType) else { return .nothing }
        if request.method == .head { return .fields }
        return response.content.isEmpty ? .nothing : .content
    }

    // MARK: Edits

    /// Edits content that is whole. Answers its new bytes and the coding that it still has; `nil` if `edit` changes nothing.
    func edit(
        _ content: HttpContent, codings: [String], _ edit: ([UInt8]) throws -> [UInt8]?
    ) throws -> (bytes: [UInt8], coding: ContentCoding?)? {
        guard let bytes = content.bytes, bytes.count <= maxBody else { throw EditingFault.tooLarge(maxBody) }
        guard let decoder = ContentDecoder(codings) else { throw EditingFault.unknownCoding }
        guard let edited = try edit(decoder.isIdentity ? bytes : decode(bytes, with: decoder)) else { return nil }
        guard edited.count <= maxBody else { throw EditingFault.tooLarge(maxBody) }
        guard let lent = encoder(for: codings) else { return (edited, nil) }
        defer { pool.giveBack(lent) }
        var coded: [UInt8] = []
        try edited.withUnsafeBytes { try lent.encoder.encode($0, .finish, into: &coded) }
        return (coded, lent.encoder.coding)
    }

    /// An encoder for content that came with these codings. `nil` if it goes on without a coding, which every recipient takes: it had
    /// none, several, or one that is not applied here, or too many contents are coded at the moment.
    func encoder(for codings: [String]) -> EncoderPool.Lent? {
        guard codings.count == 1 else { return nil }
        let name = codings[0].lowercased()
        return ContentCoding(rawValue: name == "x-gzip" ? "gzip" : name).flatMap { pool.takeEncoder($0) }
    }

    func giveBack(_ lent: EncoderPool.Lent) { pool.giveBack(lent) }

    /// The content without its codings. What would become larger than `maxBody` is not decoded further.
    private func decode(_ bytes: [UInt8], with decoder: ContentDecoder) throws -> [UInt8] {
        var decoded: [UInt8] = []
        do {
            try bytes.withUnsafeBytes {
                try decoder.decode($0) { part in
                    guard part.count <= maxBody - decoded.count else { throw EditingFault.tooLarge(maxBody) }
                    decoded.append(contentsOf: part)
                }
            }
            try decoder.finish()
        } catch let fault as ContentDecoder.Fault {
            throw EditingFault.malformed(fault.description)
        }
        return decoded
    }

    // MARK: Fields

    /// Makes the fields of a message true of edited content with that coding.
    static func describe(_ fields: inout HttpFields, coding: ContentCoding?) {
        describe(&fields)
        if let coding {
            // A coding's name is a token.
            if fields[.contentEncoding] != coding.rawValue { try? fields.set(.contentEncoding, to: coding.rawValue) }
        } else {
            fields.remove(.contentEncoding as FieldName)
        }
    }

    /// Makes the fields of a message true of content that is edited, or will be for GET.
    static func describe(_ fields: inout HttpFields) {
        for name in untrue where fields.contains(name) { fields.remove(name) }
        // Not byte by byte the same: RFC 9110 §8.8.1.
        if let tag = fields.rawValues(of: .etag).first, tag.first == 0x22 {
            // It stood in a field line before.
            try? fields.set(.etag, toRaw: [0x57, 0x2f] + tag)
        }
    }

    /// What holds for other bytes: their number, ranges and digests.
    private static let untrue: [FieldName] = [.contentLength, .acceptRanges] + HttpFields.digests

    // MARK: Failing

    /// A request that cannot be edited goes on, or is refused with the error that is thrown.
    func failed(_ error: any Error, ofRequestIn exchange: Exchange) throws {
        let reason = ContentEditing.reason(error)
        guard onFailure == .refuse else { return exchange.note("not edited: \(reason)", asDecision: false) }
        throw switch error {
        case EditingFault.tooLarge: GatewayError(.downstream, .contentTooLarge, reason)
        case EditingFault.unknownCoding: GatewayError(.downstream, .contentCodingUnsupported, reason)
        default: GatewayError(.downstream, .requestMalformed, reason)
        }
    }

    /// A response that cannot be edited goes on, or is refused with the error that is thrown.
    func failed(_ error: any Error, ofResponseIn exchange: Exchange) throws {
        let reason = ContentEditing.reason(error)
        guard onFailure == .refuse else { return exchange.note("not edited: \(reason)", asDecision: false) }
        throw switch error {
        case EditingFault.tooLarge: GatewayError(.upstream, .responseContentTooLarge, reason)
        default: GatewayError(.upstream, .responseMalformed, reason)
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let fault as EditingFault: "\(fault)"
        case is Pattern.LimitReached: "a regular expression reached its limit"
        default: "\(error)"
        }
    }
}
