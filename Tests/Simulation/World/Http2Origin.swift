// One file: the callbacks of nghttp2 all change one connection.

import CNghttp2
import HttpWare

/// One connection of an origin server that speaks HTTP/2, through nghttp2 and not through the gateway's sessions.
final class Http2OriginConnection: Peer, OriginLink {
    fileprivate final class Stream {
        let number: Int32
        var head = Head()
        var content: [UInt8] = []
        var asked: Judge.Asked?
        var isAnswering = false
        var hasEnded = false
        var output: [UInt8] = []
        var sent = 0

        init(_ number: Int32) { self.number = number }
    }

    private unowned let server: OriginServer
    private let wire: Wire
    private var session: OpaquePointer?
    private var streams: [Int32: Stream] = [:]
    /// Requests on later streams are not processed, as a GOAWAY says.
    private var lastProcessed = Int32.max
    private var isOver = false
    private var isInside = false

    init(_ server: OriginServer, _ wire: Wire) {
        self.server = server
        self.wire = wire
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, own in
            if let frame { Http2OriginConnection.own(own)?.beginHead(frame.pointee.hd.stream_id) }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, own in
            guard let frame, let name, let value else { return 0 }
            Http2OriginConnection.own(own)?.field(
                frame.pointee.hd.stream_id,
                String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self),
                String(decoding: UnsafeBufferPointer(start: value, count: valueCount), as: UTF8.self))
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, bytes, count, own in
            if let bytes {
                Http2OriginConnection.own(own)?.streams[stream]?.content += UnsafeBufferPointer(
                    start: bytes, count: count)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, own in
            if let frame { Http2OriginConnection.own(own)?.frame(frame.pointee.hd) }
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, own in
            Http2OriginConnection.own(own)?.streams[stream] = nil
            return 0
        }
        nghttp2_session_server_new(&session, callbacks, Unmanaged.passUnretained(self).toOpaque())
        nghttp2_session_callbacks_del(callbacks)
        var settings = [
            nghttp2_settings_entry(
                settings_id: Int32(bitPattern: NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue),
                value: server.world.script.seed % 4 == 0 ? 2 : 100)
        ]
        nghttp2_submit_settings(session, 0, &settings, settings.count)
        flush()
    }

    deinit { nghttp2_session_del(session) }

    private static func own(_ pointer: UnsafeMutableRawPointer?) -> Http2OriginConnection? {
        pointer.map { Unmanaged<Http2OriginConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    private var judge: Judge { server.world.judge }
    private var timeline: Timeline { server.world.timeline }

    func received(_ bytes: [UInt8]) {
        guard !isOver else { return }
        isInside = true
        let count = nghttp2_session_mem_recv(session, bytes, bytes.count)
        isInside = false
        if count < 0 { judge.fail("\(server.name) received bytes that are not HTTP/2") }
        flush()
        endIfDone()
    }

    private func flush() {
        guard !isInside, !isOver else { return }
        var all: [UInt8] = []
        while true {
            var start: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &start)
            guard count > 0, let start else { break }
            all += UnsafeBufferPointer(start: start, count: count)
        }
        wire.send(all)
    }

    private func beginHead(_ number: Int32) { if streams[number] == nil { streams[number] = Stream(number) } }

    private func field(_ number: Int32, _ name: String, _ value: String) {
        streams[number]?.head.fields.append((name, value))
    }

    private func frame(_ header: nghttp2_frame_hd) {
        guard let stream = streams[header.stream_id] else { return }
        if UInt32(header.type) == NGHTTP2_HEADERS.rawValue, stream.asked == nil { begin(stream) }
        guard UInt32(header.flags) & NGHTTP2_FLAG_END_STREAM.rawValue != 0, !stream.hasEnded else { return }
        stream.hasEnded = true
        guard let asked = stream.asked, stream.number <= lastProcessed else { return }
        judge.forwardedWhole(asked, stream.content)
        if !stream.isAnswering { answer(stream, asked) }
    }

    private func begin(_ stream: Stream) {
        stream.head.first = [stream.head[":method"] ?? "", stream.head[":path"] ?? "", "HTTP/2"]
        guard let asked = judge.forwarded(stream.head, to: "\(server.name)/\(wire.number)/\(stream.number)") else {
            return
        }
        stream.asked = asked
        let step = asked.step
        if stream.number > lastProcessed { return judge.refused(asked) }
        if step["refused"] >= asked.forwards.count {
            judge.refused(asked)
            reset(stream, NGHTTP2_REFUSED_STREAM)
            stream.isAnswering = true
            return
        }
        if step["goaway"] >= asked.forwards.count {
            goAway(after: stream.number - 2)
            return judge.refused(asked)
        }
        if step["early"] != 0 { answer(stream, asked) }
    }

    private func goAway(after last: Int32) {
        lastProcessed = max(0, min(last, lastProcessed))
        nghttp2_submit_goaway(session, 0, lastProcessed, NGHTTP2_NO_ERROR.rawValue, nil, 0)
        // Requests that came with it are not processed either.
        for stream in streams.values where stream.number > lastProcessed {
            if let asked = stream.asked, !stream.isAnswering, stream.number != last + 2 { judge.refused(asked) }
        }
    }

    private func reset(_ stream: Stream, _ code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(session, 0, stream.number, code.rawValue)
    }

    private func answer(_ stream: Stream, _ asked: Judge.Asked) {
        stream.isAnswering = true
        let step = asked.step
        let isHarmed = step["again"] != 0 || asked.forwards.count - asked.refusals <= 1
        if isHarmed {
            if step["silent"] != 0 { return }
            if step["drops"] != 0 || step["cut"] != 0 {
                return timeline.after(step["delay"] * 1000) { [weak self] in self?.breakOff() }
            }
        }
        timeline.after(step["delay"] * 1000) { [weak self] in
            guard let self, !isOver, streams[stream.number] === stream else { return }
            if isHarmed, step["reset"] != 0 { reset(stream, NGHTTP2_INTERNAL_ERROR) } else { respond(stream, asked) }
            flush()
            endIfDone()
        }
    }

    private func respond(_ stream: Stream, _ asked: Judge.Asked) {
        let step = asked.step
        if step["closes"] != 0 { goAway(after: max(stream.number, lastStream)) }
        for _ in 0..<step["interim"] { submit(stream, [(":status", "103"), ("link", "</x>")], isLast: false) }
        let user = stream.head.number("sim-user") ?? -1
        let number = stream.head.number("sim") ?? -1
        let status = step["status"] == 0 ? 200 : step["status"]
        let hasContent = asked.method != "HEAD" && step["size"] > 0 && status != 204
        var fields = [(":status", "\(status)"), ("sim-id", "\(number)"), ("sim-user", "\(user)")]
        if step["framing"] == 0, status != 204 { fields.append(("content-length", "\(step["size"])")) }
        stream.output = hasContent ? Content.bytes(number, user, count: step["size"]) : []
        submit(stream, fields, isLast: !hasContent)
        guard hasContent else { return }
        var provider = nghttp2_data_provider()
        provider.read_callback = { session, number, buffer, room, flags, _, own in
            guard let stream = Http2OriginConnection.own(own)?.streams[number], let buffer, let flags else { return 0 }
            let count = min(room, stream.output.count - stream.sent)
            for index in 0..<count { buffer[index] = stream.output[stream.sent + index] }
            stream.sent += count
            if stream.sent == stream.output.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
            return count
        }
        nghttp2_submit_data(session, UInt8(NGHTTP2_FLAG_END_STREAM.rawValue), stream.number, &provider)
    }

    private var lastStream: Int32 { streams.keys.max() ?? 0 }

    private func submit(_ stream: Stream, _ fields: [(String, String)], isLast: Bool) {
        var bytes: [UInt8] = []
        for (name, value) in fields { bytes += Array(name.utf8) + Array(value.utf8) }
        bytes.withUnsafeMutableBufferPointer { bytes in
            var place = bytes.baseAddress
            let lines = fields.map { name, value -> nghttp2_nv in
                let start = place
                let between = start.map { $0 + name.utf8.count }
                place = between.map { $0 + value.utf8.count }
                return nghttp2_nv(
                    name: start, value: between, namelen: name.utf8.count, valuelen: value.utf8.count, flags: 0)
            }
            // nghttp2 copies them.
            nghttp2_submit_headers(
                session, UInt8(isLast ? NGHTTP2_FLAG_END_STREAM.rawValue : 0), stream.number, nil, lines, lines.count,
                nil)
        }
    }

    /// After a GOAWAY, the connection ends with its last stream.
    private func endIfDone() {
        guard lastProcessed < .max, !isOver else { return }
        // Bytes are on their way here: closed at once, the connection would break, and the GOAWAY might be lost.
        if !streams.keys.contains(where: { $0 <= lastProcessed }) { wire.shut() }
    }

    // MARK: Ends

    func receivedEnd() { close() }

    func wasReset() {
        isOver = true
        server.ended(self)
    }

    func endSoftly() {
        goAway(after: lastStream)
        flush()
        endIfDone()
    }

    func breakOff() {
        isOver = true
        wire.reset()
        server.ended(self)
    }

    func closeIfIdle() { if streams.isEmpty { close() } }

    private func close() {
        guard !isOver else { return }
        isOver = true
        wire.close()
        server.ended(self)
    }
}
