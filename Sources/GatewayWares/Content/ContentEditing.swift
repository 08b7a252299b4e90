import Glibc
public import HttpWare

/// The treatment of a message that cannot be edited.
public enum EditingFailure: String, OptionWord {
    /// The message passes unchanged, and the reason is recorded.
    case pass
    /// The message is refused.
    case refuse
}

/// Why content cannot be edited.
enum EditingFault: Error, CustomStringConvertible {
    case tooLarge(Int)
    case unknownCoding
    /// The content is malformed, or the edits cannot be applied to it.
    case malformed(String)
    /// Too many long contents are being edited.
    case busy

    var description: String {
        switch self {
        case .tooLarge(let limit): "the content is larger than \(limit) bytes"
        case .unknownCoding: "the content has a coding that cannot be decoded"
        case .malformed(let reason): reason
        case .busy: "too many contents are edited at the moment"
        }
    }
}

/// Edits complete content of messages: decodes it, passes it to the edit, and encodes it again.
///
/// Fields that describe the content are updated or removed.
struct ContentEditing: Sendable {
    /// The media types of content that is edited.
    let types: [MediaPattern]
    /// The maximum size of content in bytes, decoded, both before and after the edit.
    let maxBody: Int
    let onFailure: EditingFailure
    private let pool = EncoderPool(level: 4, most: 256)

    init(types: [MediaPattern], maxBody: ByteCount, onFailure: EditingFailure) {
        self.types = types
        self.maxBody = maxBody.bytes
        self.onFailure = onFailure
    }

    /// Whether content of this type is edited. Events are edited only if their type is listed by name, because they do not end
    /// while the client listens.
    private func mean(_ type: String) -> Bool {
        types.contains { $0.matches(type) && ($0.isExact || type != ContentEditing.events) }
    }

    static let events = "text/event-stream"

    // MARK: Selecting messages

    /// Whether the content of a request is edited, however large it is.
    func concerns(_ request: HttpRequest) -> Bool {
        // With `Content-Range`, the content of a request is only a part. RFC 9110 §14.5.
        !request.content.isEmpty && request.upgrade == nil && !request.fields.contains(.contentRange)
            && mean(request.fields.mediaType)
    }

    /// The part of a response that is edited.
    enum Extent { case nothing, fields, content }

    /// The part of a response that is edited: the content, or only the fields that describe it, for a response to HEAD and a 304.
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

    /// Edits content. Returns its new bytes, or `nil` if nothing changes, and a note for the record. `time` is the limit for all
    /// regular expressions together.
    typealias Edit = @Sendable (_ bytes: [UInt8], _ time: Duration) throws -> (bytes: [UInt8]?, note: String?)

    /// The result of an edit.
    private struct Edited: Sendable {
        /// `nil` if nothing changes.
        var bytes: [UInt8]?
        /// The coding that the bytes still have.
        var coding: ContentCoding?
        var note: String?
    }

    /// Longer content is edited on separate threads, because it would keep its loop busy for too long. The limit for coded
    /// content is lower, because it can be much longer when it is decoded.
    static let mostOnLoop = 32 << 10
    static let mostCodedOnLoop = 1 << 10
    private static let timeOnLoop = Duration.milliseconds(20)
    private static let timeElsewhere = Duration.milliseconds(100)
    static let threads = OffloadQueue(
        name: "httpware.edits", threads: max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) / 2), most: 256)

    /// Whether the content is too long to be edited on a loop.
    private static func isLong(_ content: HttpContent, _ codings: [String]) -> Bool {
        content.bytes?.count ?? 0 > (codings.isEmpty ? mostOnLoop : mostCodedOnLoop)
    }

    /// Edits the complete content of a request.
    func edit(_ request: inout HttpRequest, in exchange: Exchange, by edit: @escaping Edit) throws -> Verdict {
        let (content, codings) = (request.content, request.fields.listMembers(of: .contentEncoding))
        guard ContentEditing.isLong(content, codings) else {
            try finish(result(content, codings, ContentEditing.timeOnLoop, edit), of: &request, exchange)
            return .pass
        }
        return .wait { request, exchange in
            try finish(await elsewhere(content, codings, edit), of: &request, exchange)
            return .pass
        }
    }

    private func finish(_ result: Result<Edited, any Error>, of request: inout HttpRequest, _ exchange: Exchange) throws
    {
        switch result {
        case .success(let edited):
            if let note = edited.note { exchange.note(note) }
            guard let bytes = edited.bytes else { return }
            if edited.note == nil { exchange.note("edited", asDecision: true) }
            request.content = .bytes(bytes)
            ContentEditing.describe(&request.fields, coding: edited.coding)
            exchange.requestContentChanges()
        case .failure(let error): try failed(error, ofRequestIn: exchange)
        }
    }

    /// Edits the complete content of a response.
    func edit(_ response: inout HttpResponse, in exchange: Exchange, by edit: @escaping Edit) throws -> Answer {
        let (content, codings) = (response.content, response.fields.listMembers(of: .contentEncoding))
        guard ContentEditing.isLong(content, codings) else {
            try finish(result(content, codings, ContentEditing.timeOnLoop, edit), of: &response, exchange)
            return .pass
        }
        return .wait { response, exchange in
            try finish(await elsewhere(content, codings, edit), of: &response, exchange)
            return .pass
        }
    }

    private func finish(
        _ result: Result<Edited, any Error>, of response: inout HttpResponse, _ exchange: Exchange
    ) throws {
        switch result {
        case .success(let edited):
            if let note = edited.note { exchange.note(note) }
            guard let bytes = edited.bytes else { return }
            if edited.note == nil { exchange.note("edited", asDecision: true) }
            response.content = .bytes(bytes)
            ContentEditing.describe(&response.fields, coding: edited.coding)
            exchange.responseContentChanges()
        case .failure(let error): try failed(error, ofResponseIn: exchange)
        }
    }

    private func elsewhere(
        _ content: HttpContent, _ codings: [String], _ edit: @escaping Edit
    ) async throws -> Result<Edited, any Error> {
        let wait = LoopWait<Result<Edited, any Error>>()
        let isTaken = ContentEditing.threads.submit({
            result(content, codings, ContentEditing.timeElsewhere, edit)
        }) { wait.resume(returning: $0) }
        return isTaken ? try await wait.value() : .failure(EditingFault.busy)
    }

    private func result(
        _ content: HttpContent, _ codings: [String], _ time: Duration, _ edit: Edit
    ) -> Result<Edited, any Error> {
        Result { try edited(content, codings, time, edit) }
    }

    /// Decodes the content, passes it to the edit, and encodes it again.
    private func edited(
        _ content: HttpContent, _ codings: [String], _ time: Duration, _ edit: Edit
    ) throws -> Edited {
        guard let bytes = content.bytes, bytes.count <= maxBody else { throw EditingFault.tooLarge(maxBody) }
        guard let decoder = ContentDecoder(codings) else { throw EditingFault.unknownCoding }
        let (changed, note) = try edit(decoder.isIdentity ? bytes : decode(bytes, with: decoder), time)
        guard let changed else { return Edited(note: note) }
        guard changed.count <= maxBody else { throw EditingFault.tooLarge(maxBody) }
        guard let lent = encoder(for: codings) else { return Edited(bytes: changed, note: note) }
        defer { pool.giveBack(lent) }
        var coded: [UInt8] = []
        try changed.withUnsafeBytes { try lent.encoder.encode($0, .finish, into: &coded) }
        return Edited(bytes: coded, coding: lent.encoder.coding, note: note)
    }

    /// Takes an encoder for content with these codings. `nil` if the content is sent without a coding, which every client
    /// accepts. That is so for no coding, several codings or an unsupported one, and while too many contents are being encoded.
    func encoder(for codings: [String]) -> EncoderPool.Lent? {
        guard codings.count == 1 else { return nil }
        let name = codings[0].lowercased()
        return ContentCoding(rawValue: name == "x-gzip" ? "gzip" : name).flatMap { pool.takeEncoder($0) }
    }

    func giveBack(_ lent: EncoderPool.Lent) { pool.giveBack(lent) }

    /// Decodes the content. Stops if it becomes larger than `maxBody`.
    private func decode(_ bytes: [UInt8], with decoder: ContentDecoder) throws -> [UInt8] {
        var decoded: [UInt8] = []
        do {
            let isAll = try decoder.decode(bytes, into: &decoded, upTo: maxBody)
            guard isAll else { throw EditingFault.tooLarge(maxBody) }
            try decoder.finish()
        } catch let fault as ContentDecoder.Fault {
            throw EditingFault.malformed(fault.description)
        }
        return decoded
    }

    // MARK: Fields

    /// Makes the fields of a message describe edited content with that coding.
    static func describe(_ fields: inout HttpFields, coding: ContentCoding?) {
        describe(&fields)
        if let coding {
            // Cannot throw: the name of a coding is a token.
            if fields[.contentEncoding] != coding.rawValue { try? fields.set(.contentEncoding, to: coding.rawValue) }
        } else {
            fields.remove(.contentEncoding as FieldName)
        }
    }

    /// Makes the fields of a message describe edited content. For a response to HEAD, that is the content that GET would get.
    static func describe(_ fields: inout HttpFields) {
        for name in untrue where fields.contains(name) { fields.remove(name) }
        // The content is not the same byte for byte, so the validator becomes weak: RFC 9110 §8.8.1.
        if let tag = fields.rawValues(of: .etag).first, tag.first == 0x22 {
            // Cannot throw: it was in a field line.
            try? fields.set(.etag, toRaw: [0x57, 0x2f] + tag)
        }
    }

    /// Fields that are wrong for edited content: its length, ranges and digests.
    private static let untrue: [FieldName] = [.contentLength, .acceptRanges] + HttpFields.digests

    // MARK: Failing

    /// Handles a request that cannot be edited: it passes, or is refused with the error that is thrown.
    func failed(_ error: any Error, ofRequestIn exchange: Exchange) throws {
        let reason = ContentEditing.reason(error)
        guard onFailure == .refuse else { return exchange.note("not edited: \(reason)") }
        throw switch error {
        case EditingFault.tooLarge: GatewayError(.downstream, .contentTooLarge, reason)
        case EditingFault.unknownCoding: GatewayError(.downstream, .contentCodingUnsupported, reason)
        case EditingFault.busy: GatewayError(.gateway, .internalError, reason)
        default: GatewayError(.downstream, .requestMalformed, reason)
        }
    }

    /// Handles a response that cannot be edited: it passes, or is refused with the error that is thrown.
    func failed(_ error: any Error, ofResponseIn exchange: Exchange) throws {
        let reason = ContentEditing.reason(error)
        guard onFailure == .refuse else { return exchange.note("not edited: \(reason)") }
        throw switch error {
        case EditingFault.tooLarge: GatewayError(.upstream, .responseContentTooLarge, reason)
        case EditingFault.busy: GatewayError(.gateway, .internalError, reason)
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
