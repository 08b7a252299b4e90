import Capturing
import HttpWare

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A capture as bytes: its row, which lists and filters read, and the rest. Neither contains masked values.
enum CaptureRecord {
    // MARK: The row

    static func row(_ capture: CapturedExchange) -> [UInt8] {
        var row = RecordWriter(reserving: 512)
        row.number(capture.id)
        row.number(capture.duration)
        row.number(capture.contentSize)
        row.optional(capture.status) { $0.number($1) }
        row.text(capture.url)
        row.text(capture.method)
        row.text(capture.version)
        row.text(capture.kind.rawValue)
        row.number(capture.started.seconds)
        row.number(Int(capture.started.nanoseconds))
        row.text(capture.listener)
        for text in [capture.route, capture.service, capture.client, capture.server, capture.fault] {
            row.optional(text)
        }
        row.list(capture.operations) { $0.text($1) }
        row.optional(capture.replayOf) { $0.number($1) }
        row.list(capture.rules) { $0.number($1) }
        row.text(capture.comment)
        row.flag(capture.isPinned)
        facts(capture.request, &row)
        row.optional(capture.response) { facts($1, &$0) }
        row.optional(capture.summaryOfRecord) { row, summary in
            row.text(summary.responder)
            row.optional(summary.cache)
            row.flag(summary.isReplayed)
            row.text(summary.end)
            row.list(summary.wares) {
                $0.text($1.ware)
                $0.text($1.decision)
            }
            row.number(summary.attempts)
        }
        return row.bytes
    }

    /// The facts of a message in a row.
    private static func facts(_ message: CapturedMessage, _ row: inout RecordWriter) {
        row.number(message.content.size)
        row.list(message.values(of: "content-type")) { $0.text($1) }
    }

    /// The exchange without content, messages, and fields other than `Content-Type`.
    static func readRow(
        _ bytes: UnsafeRawBufferPointer, _ pool: inout TextPool
    ) throws(DamagedRecord) -> CapturedExchange {
        var row = RecordReader(bytes)
        let id = try row.number()
        let duration = Int64(try row.number())
        _ = try row.number()
        let status = try row.optional { (row) throws(DamagedRecord) in try row.number() }
        let url = try row.text()
        let method = try row.text()
        let version = try row.text()
        let kind = CapturedExchange.Kind(rawValue: try row.text()) ?? .http
        let seconds = Int64(try row.number())
        let nanoseconds = try row.number()
        guard (0..<1_000_000_000).contains(nanoseconds) else { throw DamagedRecord() }
        var capture = CapturedExchange(
            id: id, started: WallTime(seconds: seconds, nanoseconds: Int32(nanoseconds)), method: method, url: url,
            version: version, listener: "", request: CapturedMessage())
        capture.kind = kind
        capture.isOpen = false
        capture.duration = duration
        capture.status = status
        capture.listener = try row.text(&pool)
        capture.route = try text(&row, &pool)
        capture.service = try text(&row, &pool)
        capture.client = try text(&row, &pool)
        capture.server = try text(&row, &pool)
        capture.fault = try text(&row, &pool)
        capture.operations = try row.list { (row) throws(DamagedRecord) in try row.text() }
        capture.replayOf = try row.optional { (row) throws(DamagedRecord) in try row.number() }
        capture.rules = try row.list { (row) throws(DamagedRecord) in try row.number() }
        capture.comment = try row.text()
        capture.isPinned = try row.flag()
        capture.request = try readFacts(&row, &pool)
        if try row.flag() { capture.response = try readFacts(&row, &pool) }
        if try row.flag() { capture.summary = try readSummary(&row, &pool) }
        return capture
    }

    private static func text(
        _ row: inout RecordReader, _ pool: inout TextPool
    ) throws(DamagedRecord) -> String? {
        try row.flag() ? try row.text(&pool) : nil
    }

    private static func readFacts(
        _ row: inout RecordReader, _ pool: inout TextPool
    ) throws(DamagedRecord) -> CapturedMessage {
        var message = CapturedMessage()
        message.content.size = max(0, try row.number())
        for _ in 0..<(try row.count()) { message.fields.append(.init("Content-Type", try row.text(&pool))) }
        return message
    }

    static func readSummary(
        _ row: inout RecordReader, _ pool: inout TextPool
    ) throws(DamagedRecord) -> ReportSummary {
        let responder = try row.text(&pool)
        let cache = try text(&row, &pool)
        let isReplayed = try row.flag()
        var summary = ReportSummary(
            responder: responder, cache: cache, isReplayed: isReplayed, end: try row.text(&pool), wares: [])
        for _ in 0..<(try row.count()) {
            summary.wares.append(.init(ware: try row.text(&pool), decision: try row.text(&pool)))
        }
        // Rows of earlier versions end here.
        if !row.isAtEnd { summary.attempts = try row.number() }
        return summary
    }

    // MARK: The rest

    static func rest(_ capture: CapturedExchange) -> [UInt8] {
        var rest = RecordWriter(
            reserving: 2048 + capture.request.content.kept.count + (capture.response?.content.kept.count ?? 0))
        message(capture.request, nil, &rest)
        rest.optional(capture.sentRequest) { message($1, capture.request, &$0) }
        rest.optional(capture.response) { message($1, nil, &$0) }
        rest.optional(capture.receivedResponse) { message($1, capture.response, &$0) }
        rest.list(capture.messages) { rest, piece in
            rest.flag(piece.direction == .send)
            switch piece.form {
            case .webSocket(let opcode): rest.number(Int(opcode & 0x0f) | (piece.isMasked ? masked : 0))
            case .event(let type, let id):
                rest.number(-1)
                rest.optional(type)
                rest.optional(id)
            case .grpc: rest.number(-2)
            }
            rest.number(piece.time.seconds)
            rest.number(Int(piece.time.nanoseconds))
            rest.data(piece.data)
            rest.number(piece.size)
        }
        rest.optional(capture.report?.jsonBytes) { $0.data($1) }
        rest.optional(capture.timings) { rest, timings in
            for time in [timings.blocked, timings.dns, timings.connect, timings.ssl] {
                rest.optional(time) { $0.number($1) }
            }
            for time in [timings.send, timings.wait, timings.receive] { rest.number(time) }
        }
        tls(capture.tls.client, &rest)
        tls(capture.tls.server, &rest)
        rest.optional(capture.reason)
        rest.flag(capture.isCutOff)
        rest.optional(capture.tls.client?.group)
        rest.optional(capture.tls.server?.group)
        rest.flag(capture.isReasonRaw)
        return rest.bytes
    }

    /// A number that is added to the opcode of a message with masked values. An opcode has only four bits: RFC 6455
    /// §5.2.
    private static let masked = 0x10

    /// Parts that equal the other side of the chain are written once.
    private static func message(_ message: CapturedMessage, _ other: CapturedMessage?, _ rest: inout RecordWriter) {
        fields(message.fields, other?.fields, &rest)
        fields(message.trailers, other?.trailers, &rest)
        let content = message.content
        let isSame = other.map { $0.content.kept == content.kept } ?? false
        rest.flag(isSame)
        if !isSame { rest.data(content.kept) }
        rest.number(content.size)
        rest.optional(content.sha256)
        rest.number(content.dropped)
        rest.flag(content.isDecoded)
        rest.optional(content.maskedFrom) { $0.number($1) }
    }

    private static func fields(
        _ fields: CapturedFields, _ other: CapturedFields?, _ rest: inout RecordWriter
    ) {
        let isSame = fields == other
        rest.flag(isSame)
        guard !isSame else { return }
        rest.number(fields.count)
        fields.forEachLine { name, value in
            rest.data(name)
            rest.data(value)
        }
    }

    /// Fills in the parts that the row does not have.
    static func readRest(_ bytes: UnsafeRawBufferPointer, into capture: inout CapturedExchange) throws(DamagedRecord) {
        var rest = RecordReader(bytes)
        let request = try readMessage(&rest, nil)
        capture.request = request
        capture.sentRequest = try rest.flag() ? try readMessage(&rest, request) : nil
        let response = try rest.flag() ? try readMessage(&rest, nil) : nil
        capture.response = response
        capture.receivedResponse = try rest.flag() ? try readMessage(&rest, response) : nil
        capture.messages = try rest.list { (rest) throws(DamagedRecord) in try readPiece(&rest) }
        if try rest.flag() {
            let json = try rest.data()
            capture.setReport { try? JSONDecoder().decode(ExchangeReport.self, from: Data(json)) }
        }
        if try rest.flag() {
            var timings = CapturedTimings()
            let number = { (rest: inout RecordReader) throws(DamagedRecord) -> Int in try rest.number() }
            timings.blocked = try rest.optional(number)
            timings.dns = try rest.optional(number)
            timings.connect = try rest.optional(number)
            timings.ssl = try rest.optional(number)
            timings.send = try rest.number()
            timings.wait = try rest.number()
            timings.receive = try rest.number()
            capture.timings = timings
        }
        // Records of earlier versions end here.
        guard !rest.isAtEnd else { return }
        capture.tls.client = try readTls(&rest)
        capture.tls.server = try readTls(&rest)
        // So do records of the versions after them.
        guard !rest.isAtEnd else { return }
        capture.reason = try rest.optional { (rest) throws(DamagedRecord) in try rest.text() }
        capture.isCutOff = try rest.flag()
        guard !rest.isAtEnd else { return }
        let text = { (rest: inout RecordReader) throws(DamagedRecord) -> String in try rest.text() }
        if let group = try rest.optional(text) { capture.tls.client = capture.tls.client?.with(group: group) }
        if let group = try rest.optional(text) { capture.tls.server = capture.tls.server?.with(group: group) }
        guard !rest.isAtEnd else { return }
        capture.isReasonRaw = try rest.flag()
    }

    private static func readMessage(
        _ rest: inout RecordReader, _ other: CapturedMessage?
    ) throws(DamagedRecord) -> CapturedMessage {
        var message = CapturedMessage()
        message.fields = try readFields(&rest, other?.fields)
        message.trailers = try readFields(&rest, other?.trailers)
        if try rest.flag() {
            guard let other else { throw DamagedRecord() }
            message.content.kept = other.content.kept
        } else {
            message.content.kept = try rest.data()
        }
        message.content.size = max(0, try rest.number())
        message.content.sha256 = try rest.optional { (rest) throws(DamagedRecord) in try rest.text() }
        message.content.dropped = max(0, try rest.number())
        message.content.isDecoded = try rest.flag()
        message.content.maskedFrom = try rest.optional { (rest) throws(DamagedRecord) in try rest.number() }
        return message
    }

    private static func readFields(
        _ rest: inout RecordReader, _ other: CapturedFields?
    ) throws(DamagedRecord) -> CapturedFields {
        if try rest.flag() {
            guard let other else { throw DamagedRecord() }
            return other
        }
        var fields = CapturedFields()
        for _ in 0..<(try rest.count()) {
            let name = try rest.piece()
            // Names are texts. Other bytes would be written otherwise.
            guard String(validating: name, as: UTF8.self) != nil else { throw DamagedRecord() }
            fields.append(name: name, value: try rest.piece())
        }
        return fields
    }

    private static func readPiece(_ rest: inout RecordReader) throws(DamagedRecord) -> CapturedPiece {
        let direction: CapturedPiece.Direction = try rest.flag() ? .send : .receive
        let form: CapturedPiece.Form
        var isMasked = false
        switch try rest.number() {
        case -2: form = .grpc
        case -1:
            let type = try rest.optional { (rest) throws(DamagedRecord) in try rest.text() }
            form = .event(type: type, id: try rest.optional { (rest) throws(DamagedRecord) in try rest.text() })
        case let opcode:
            guard let bits = UInt8(exactly: opcode) else { throw DamagedRecord() }
            isMasked = opcode & masked != 0
            form = .webSocket(opcode: bits & 0x0f)
        }
        let seconds = Int64(try rest.number())
        let nanoseconds = try rest.number()
        guard (0..<1_000_000_000).contains(nanoseconds) else { throw DamagedRecord() }
        let data = try rest.data()
        var piece = CapturedPiece(
            direction, form, time: WallTime(seconds: seconds, nanoseconds: Int32(nanoseconds)), data: data,
            size: max(data.count, try rest.number()))
        piece.isMasked = isMasked
        return piece
    }
}
