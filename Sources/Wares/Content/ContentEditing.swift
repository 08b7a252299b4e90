import Glibc
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
    /// Too many long contents are edited.
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

    /// Edits content: its new bytes, `nil` if nothing changes, and what the record says of it besides that. All regular expressions
    /// together may take the time.
    typealias Edit = @Sendable (_ bytes: [UInt8], _ time: Duration) throws -> (bytes: [UInt8]?, note: String?)

    /// What came of an edit.
    private struct Edited: Sendable {
        /// `nil` if nothing changes.
        var bytes: [UInt8]?
        /// The coding that they still have.
        var coding: ContentCoding?
        var note: String?
    }

    /// Longer content is edited on threads of its own: its loop would be busy for too long. Coded content may be much longer when it is
    /// decoded.
    static let mostOnLoop = 32 << 10
    static let mostCodedOnLoop = 1 << 10
    private static let timeOnLoop = Duration.milliseconds(20)
    private static let timeElsewhere = Duration.milliseconds(100)
    static let threads = OffloadQueue(
        name: "httpware.edits", threads: max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) / 2), most: 256)

    /// Whether an edit of the content is not for loops.
    private static func isLong(_ content: HttpContent, _ codings: [String]) -> Bool {
        content.bytes?.count ?? 0 > (codings.isEmpty ? mostOnLoop : mostCodedOnLoop)
    }

    /// Edits the content of a request that is whole.
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

    /// Edits the content of a response that is whole.
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

    /// Takes the codings off, lets the content be edited, and applies the coding again.
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
        guard onFailure == .refuse else { return exchange.note("not edited: \(reason)") }
        throw switch error {
        case EditingFault.tooLarge: GatewayError(.downstream, .contentTooLarge, reason)
        case EditingFault.unknownCoding: GatewayError(.downstream, .contentCodingUnsupported, reason)
        case EditingFault.busy: GatewayError(.gateway, .internalError, reason)
        default: GatewayError(.downstream, .requestMalformed, reason)
        }
    }

    /// A response that cannot be edited goes on, or is refused with the error that is thrown.
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
