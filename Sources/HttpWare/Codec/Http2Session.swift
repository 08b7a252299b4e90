// One file: the callbacks of nghttp2 all change the state of one session.

import CNghttp2

/// Receives the events of a session, and provides what it needs: the connection.
protocol Http2SessionHandler: AnyObject {
    /// For a server: makes an object for a new stream.
    func makeStream() -> Http2Stream
    /// The stream has ended, and was notified.
    func streamClosed(_ stream: consuming Http2Stream)
    /// The session has output.
    func wantsToSend()
    /// Takes output. The bytes are valid until the end of the event if they are in a buffer of the loop, otherwise during the call.
    func write(_ bytes: UnsafeRawBufferPointer)
    /// Whether the socket accepts no more at present.
    var isOutputFull: Bool { get }
    /// The rules for heads from now on.
    var rules: Http2HeadDecoder.Rules { get }
    /// The current time in nanoseconds of the loop's clock.
    var now: Int64 { get }
    /// The peer's SETTINGS arrived.
    func settingsReceived()
    /// The peer accepts no more streams.
    func goAwayReceived()
}

/// One end of a connection of HTTP/2, without a socket. libnghttp2 handles frames, the compression of fields and flow
/// control; `Http2HeadDecoder` decides what the fields of messages mean. RFC 9113.
///
/// Its methods and libnghttp2's callbacks (through `Http2Library`) use the same streams and the same head
/// that is being read, so they are in one file.
final class Http2Session {
    /// The end of the connection.
    enum Role { case server, client }

    private var session: OpaquePointer?
    private let role: Role
    /// The rules when the current head began.
    private var rules: Http2HeadDecoder.Rules
    /// Neither counted nor checked: the handler owns the session, and is used with every frame.
    unowned(unsafe) private var handler: (any Http2SessionHandler)!
    /// The memory of libnghttp2; `nil` uses the C library.
    private let memory: Http2Memory?
    /// Whether the handler knows that there is output.
    private var hasAsked = false
    /// The open streams.
    private(set) var streams: [Http2Stream] = []
    private var budget = Http2FrameBudget()
    private var heads: Http2FrameHeads
    /// Received frames that libnghttp2 has not reported, except DATA with content.
    private var untold = 0
    private var decoder: Http2HeadDecoder
    /// The memory in which heads are built. It belongs to the loop, because it is used within one call; a session without a loop has
    /// its own.
    private let lines: UnsafeMutablePointer<Http2Lines>
    private var request = HttpRequest()
    private var response = HttpResponse(.ok)
    private var trailers = HttpFields()
    /// The stream whose head is being read. Not counted, because `streams` retains it.
    private var headStream: Unmanaged<Http2Stream>?
    private var continuations = 0
    private var isBusy = false
    /// For a server: the streams whose response ends before the request.
    private var earlyEnds = Http2EarlyEnds()
    /// The last stream that a client began, and the most recent streams that ended before the client had ended them.
    private var lastStream: Int32 = 0
    /// The last stream that is served or that was refused, once the connection accepts no more streams; before, `nil`.
    private var lastTaken: Int32?
    private var abandoned: [Int32] = []
    private static let mostAbandoned = 128
    /// The last stream that the peer processes, as its GOAWAY says.
    private(set) var lastProcessed = Int32.max
    /// Whether the peer's GOAWAY says that it wants HTTP/1.1.
    private(set) var requiresHttp1 = false
    /// Whether the connection is being ended, after a fault or a flood.
    private(set) var isTerminating = false

    /// The maximum number of concurrent streams for a client. RFC 9113 §6.5.2 recommends no smaller value.
    static let mostStreams: UInt32 = 100
    /// The maximum of a stream's content that the peer may send in advance.
    static let streamWindow: UInt32 = 128 * 1024
    static let connectionWindow: Int32 = 4 * 1024 * 1024

    /// Makes a session with memory of its own, and sets its handler.
    convenience init(_ role: Role, handler: any Http2SessionHandler) {
        self.init(role, rules: handler.rules, memory: nil)
        begin(handler)
    }

    /// Makes a session with these rules for heads. Call `begin` next, before anything else.
    init(_ role: Role, rules: Http2HeadDecoder.Rules, memory: Http2Memory?) {
        self.role = role
        self.rules = rules
        decoder = Http2HeadDecoder(trimsValues: role == .client)
        self.memory = memory
        lines = memory?.lines ?? Http2Memory.makeLines()
        heads = Http2FrameHeads(behind: role == .server ? Http2Preface.count : 0)
        let own = Unmanaged.passUnretained(self).toOpaque()
        let shared = Http2Library.shared
        var functions = memory?.functions ?? nghttp2_mem()
        let code = withUnsafeMutablePointer(to: &functions) { functions in
            let functions = memory == nil ? nil : functions
            return role == .server
                ? nghttp2_session_server_new3(&session, shared.callbacks, own, shared.options, functions)
                : nghttp2_session_client_new3(&session, shared.callbacks, own, shared.options, functions)
        }
        guard code == 0 else { return }  // without memory: the first call ends the connection
        submitSettings()
    }

    /// Sets the handler. It owns the session, and must outlive its calls.
    func begin(_ handler: any Http2SessionHandler) { self.handler = handler }

    deinit {
        if let session { nghttp2_session_del(session) }
        if memory == nil { Http2Memory.free(lines) }
    }

    private func submitSettings() {
        func entry(_ id: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
            nghttp2_settings_entry(settings_id: Int32(bitPattern: id.rawValue), value: value)
        }
        var settings = [
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, Http2Session.streamWindow),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, UInt32(clamping: rules.limits.head)),
        ]
        if role == .server {
            settings.append(entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, Http2Session.mostStreams))
            settings.append(entry(NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1))
            settings.append(entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1))
        } else {
            settings.append(entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0))
        }
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
        nghttp2_session_set_local_window_size(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Http2Session.connectionWindow)
    }

    // MARK: The connection

    /// Takes bytes from the peer; false if they are not HTTP/2 and the connection must end at once.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard session != nil, !isBusy, !isTerminating else { return false }
        isBusy = true
        let result = nghttp2_session_mem_recv(
            session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        isBusy = false
        if result >= 0 {
            countIgnored(UnsafeRawBufferPointer(rebasing: bytes.prefix(result)))
            return true
        }
        terminate(
            result == Int(NGHTTP2_ERR_FLOODED.rawValue) ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR)
        return false
    }

    /// Counts ignored frames: those of unknown types and of closed streams cost time, too. RFC 9113 §10.5.
    private func countIgnored(_ bytes: UnsafeRawBufferPointer) {
        untold &+= heads.count(bytes)
        while untold > 0, !isTerminating {
            untold &-= 1
            if !budget.takeFrame(.other, now: handler.now) { calm() }
        }
    }

    /// Whether `send` may be called now: not while bytes are being received.
    var maySend: Bool { !isBusy }

    /// Writes the pending output.
    func send() {
        hasAsked = false
        guard session != nil, !isBusy, let handler else { return }
        sendFrames(to: handler)
    }

    /// The handler is a parameter, so that it is not retained for every frame.
    private func sendFrames(to handler: some Http2SessionHandler) {
        repeat {
            isBusy = true
            while !handler.isOutputFull {
                var bytes: UnsafePointer<UInt8>?
                let count = nghttp2_session_mem_send(session, &bytes)
                guard count > 0, let bytes else { break }
                handler.write(UnsafeRawBufferPointer(start: bytes, count: count))
            }
            isBusy = false
        } while pingEarlyEnds()
    }

    /// Whether neither side has more to send, so that the connection must be closed.
    var isOver: Bool {
        session == nil || nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// Whether the peer has sent part of a head.
    var isReadingHead: Bool { headStream != nil }

    func touched() { wantToSend() }

    /// Notifies the handler, once before each `send`.
    private func wantToSend() {
        guard !hasAsked else { return }
        hasAsked = true
        handler.wantsToSend()
    }

    /// Ends the connection with a GOAWAY that names the reason; streams end with it.
    private func terminate(_ code: nghttp2_error_code, because reason: String = "HTTP/2 was violated within the head") {
        guard !isTerminating else { return }
        isTerminating = true
        breakHead(.malformed(reason))
        nghttp2_session_terminate_session(session, code.rawValue)
        wantToSend()
    }

    /// Ends the connection with a peer that did not finish what it began.
    func terminateIdle() {
        breakHead(GatewayError(.downstream, .requestTimeout, "the head took too long"))
        terminate(NGHTTP2_NO_ERROR)
    }

    /// Ends the connection because of a flood.
    private func calm() { terminate(NGHTTP2_ENHANCE_YOUR_CALM, because: "the client sent too much that moves nothing") }

    /// The connection ends within the head of a request, which is not answered.
    private func breakHead(_ error: GatewayError) {
        guard role == .server, decoder.section == .request, let stream = headStream?.takeUnretainedValue() else {
            return
        }
        headStream = nil
        decoder.keepRead(of: &request)
        stream.requestRefused(error, &request, isAnswered: false)
    }

    /// A request is refused before its head was read. `error` is for its record: the client only sees the refusal of its stream.
    private func refuseUnread(_ error: GatewayError) {
        guard role == .server, !isTerminating else { return }
        request.reset()
        request.version = .http2
        handler.makeStream().requestRefused(error, &request, isAnswered: false)
        if !budget.takeFrame(.other, now: handler.now) { calm() }
    }

    /// libnghttp2 refuses a frame.
    func frameRefused(_ frame: borrowing nghttp2_frame, _ code: Int32) {
        guard frame.hd.type == 1, role == .server, headStream == nil, stream(frame.hd.stream_id) == nil else { return }
        refuseUnread(
            code == NGHTTP2_ERR_REFUSED_STREAM.rawValue
                ? GatewayError(
                    .downstream, .connectionLimitReached, "more than \(Http2Session.mostStreams) requests at once",
                    mayRetry: true)
                : .malformed("HTTP/2 was violated before the head"))
    }

    /// Announces that the connection ends soon. RFC 9113 §6.8.
    func announceEnd() {
        nghttp2_submit_shutdown_notice(session)
        wantToSend()
    }

    /// Accepts no more streams; the current ones continue.
    func endStreams() {
        lastTaken = lastStream
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
            NGHTTP2_NO_ERROR.rawValue, nil, 0)
        wantToSend()
    }

    /// The peer's limit of concurrent streams.
    var peersMostStreams: Int {
        Int(nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// The number of the last stream that we began; 0 before the first one.
    var lastBegun: Int32 { session == nil ? 0 : Int32(clamping: nghttp2_session_get_next_stream_id(session)) - 2 }

    /// Whether the peer, a server, accepts WebSockets. RFC 8441 §3.
    var takesWebSockets: Bool {
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1
    }

    /// Whether we may begin a stream.
    var mayOpen: Bool { session != nil && !isTerminating && nghttp2_session_check_request_allowed(session) != 0 }

    // MARK: Streams

    private func addStream(_ stream: consuming Http2Stream, _ id: Int32) {
        stream.open(id)
        stream.place = streams.count
        streams.append(stream)
    }

    /// Sends a request on a new stream; false if the connection accepts none.
    func submit(
        _ request: inout HttpRequest, _ options: HeadEncoder.RequestOptions, hasContent: Bool,
        on stream: Http2Stream, isSecure: Bool
    ) -> Bool {
        guard mayOpen else { return false }
        let own = Unmanaged.passUnretained(stream).toOpaque()
        var provider = nghttp2_data_provider(source: nghttp2_data_source(ptr: own), read_callback: readContent)
        let id = lines.pointee.withRequest(&request, options, isSecure: isSecure) { lines in
            withUnsafePointer(to: &provider) {
                nghttp2_submit_request(session, nil, lines.first, lines.count, hasContent ? $0 : nil, own)
            }
        }
        guard id > 0 else { return false }
        addStream(stream, id)
        stream.headWritten(hasContent: hasContent)
        wantToSend()
        return true
    }

    /// Sends the head of a final response.
    func submit(
        _ response: inout HttpResponse, _ options: HeadEncoder.ResponseOptions, hasContent: Bool,
        isLong: Bool, on stream: Http2Stream
    ) {
        var provider = nghttp2_data_provider(
            source: nghttp2_data_source(ptr: Unmanaged.passUnretained(stream).toOpaque()), read_callback: readContent)
        let code = lines.pointee.withResponse(&response, options) { lines in
            withUnsafePointer(to: &provider) {
                nghttp2_submit_response(session, stream.id, lines.first, lines.count, hasContent ? $0 : nil)
            }
        }
        guard code == 0 else { return reset(stream, NGHTTP2_INTERNAL_ERROR) }
        if isLong {
            // Long responses are interleaved, not sent one after another.
            var priority = nghttp2_extpri(urgency: 3, inc: 1)
            nghttp2_session_change_extpri_stream_priority(session, stream.id, &priority, 1)
        }
        stream.headWritten(hasContent: hasContent)
        wantToSend()
    }

    /// Sends the head of an interim response.
    func submitInterim(_ response: HttpResponse, on stream: Http2Stream) {
        var response = response
        _ = lines.pointee.withResponse(&response, HeadEncoder.ResponseOptions()) { lines in
            nghttp2_submit_headers(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, nil, lines.first, lines.count, nil)
        }
        wantToSend()
    }

    /// Resets a stream.
    private func reset(_ stream: Http2Stream, _ code: nghttp2_error_code) {
        guard stream.isOpen else { return }
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code.rawValue)
        wantToSend()
    }

    /// Cancels a stream whose rest we do not need.
    func cancel(_ stream: Http2Stream) { giveUp(stream, NGHTTP2_CANCEL) }

    /// Resets a stream whose message broke off on our side.
    func breakOff(_ stream: Http2Stream) { giveUp(stream, NGHTTP2_INTERNAL_ERROR) }

    private func giveUp(_ stream: Http2Stream, _ code: nghttp2_error_code) {
        stream.isGivenUp = true
        reset(stream, code)
    }

    /// An exchange completed: the peer gets more tolerance for resets.
    func exchangeCompleted() { budget.earnExchange() }

    func resume(_ stream: Http2Stream) {
        nghttp2_session_resume_data(session, stream.id)
        wantToSend()
    }

    func consume(_ stream: Http2Stream, _ count: Int) {
        // The rest of the request is useless: the client need not send more than its window allows.
        if stream.endsEarly == .left, !stream.takesRest { return }
        nghttp2_session_consume_stream(session, stream.id, count)
        if !isBusy, nghttp2_session_want_write(session) != 0 { wantToSend() }
    }

    /// Our message ends before the peer's: after it was sent, the peer is told to stop. RFC 9113 §8.1.
    func endsEarly(_ stream: Http2Stream) { if role == .server { earlyEnds.append(stream) } }

    /// Sends a PING after responses that ended early, if one is needed. Returns whether it did.
    private func pingEarlyEnds() -> Bool {
        guard !isTerminating else { return false }
        let ping = earlyEnds.takePing(now: handler.now) {
            nghttp2_session_get_stream_local_close(session, $0.id) == 1
        }
        guard let ping else { return false }
        submit(ping: ping)
        return true
    }

    private func submit(ping: UInt64) {
        withUnsafeBytes(of: ping.bigEndian) {
            _ = nghttp2_submit_ping(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
    }

    private func pingAcknowledged(_ frame: borrowing nghttp2_frame) {
        let ping = withUnsafeBytes(of: frame.ping.opaque_data) { UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)) }
        for stream in earlyEnds.acknowledged(ping) { reset(stream, NGHTTP2_NO_ERROR) }
    }

    /// The time at which to call `timeReached`; `Int64.max` means never.
    var due: Int64 { earlyEnds.earliestDue }

    /// Resets the streams whose deadline has passed.
    func timeReached(_ now: Int64) {
        for stream in earlyEnds.due(now) { reset(stream, NGHTTP2_NO_ERROR) }
    }

    private func stream(_ id: Int32) -> Http2Stream? {
        nghttp2_session_get_stream_user_data(session, id).map {
            Unmanaged<Http2Stream>.fromOpaque($0).takeUnretainedValue()
        }
    }

    // MARK: Callbacks of libnghttp2

    func frameBegan(_ head: borrowing nghttp2_frame_hd) {
        if !Http2FrameHeads.isContent(type: head.type, flags: head.flags, length: head.length) { untold &-= 1 }
        guard !isTerminating else { return }
        let kind: Http2FrameBudget.Kind
        switch Int32(head.type) {
        case 0:  // DATA
            guard head.length == 0, head.flags & 0x1 == 0 else { return }
            kind = .emptyData
        case 1:  // HEADERS
            continuations = 0
            if role == .server, head.stream_id <= lastStream, stream(head.stream_id) == nil {
                sawOldStream(head.stream_id)
            } else if let last = lastTaken, head.stream_id > last {
                lastTaken = head.stream_id
                refuseUnread(
                    GatewayError(
                        .downstream, .connectionTerminated, "the connection is being closed, as its client was told",
                        mayRetry: true))
            }
            return
        case 2 where head.stream_id == 0: return terminate(NGHTTP2_PROTOCOL_ERROR)  // PRIORITY
        case 3:
            if stream(head.stream_id) != nil { return }  // counted when the stream closes
            kind = .other
        case 5: return  // PUSH_PROMISE is refused
        case 4: kind = .settings
        case 6:
            if head.flags & 0x1 != 0, earlyEnds.expectsAcknowledgement() { return }
            kind = .ping
        case 7: return  // GOAWAY
        case 8: kind = .windowUpdate
        case 9:
            continuations += 1
            if continuations > Http2FrameBudget.mostContinuations { calm() }
            return
        default: kind = .other
        }
        if !budget.takeFrame(kind, now: handler.now) { calm() }
    }

    /// RFC 9113 §5.1.1: "unexpected" numbers are a connection error. Trailers of a stream that we ended are not an error.
    private func sawOldStream(_ id: Int32) {
        guard let index = abandoned.firstIndex(of: id) else { return terminate(NGHTTP2_PROTOCOL_ERROR) }
        abandoned.remove(at: index)
    }

    func headBegan(_ frame: borrowing nghttp2_frame) {
        guard !isTerminating else { return }
        let id = frame.hd.stream_id
        if role == .server, frame.headers.cat == NGHTTP2_HCAT_REQUEST {
            guard let handler else { return }
            rules = handler.rules
            let stream = handler.makeStream()
            let own = Unmanaged.passUnretained(stream)
            addStream(stream, id)
            lastStream = max(lastStream, id)
            nghttp2_session_set_stream_user_data(session, id, own.toOpaque())
            headStream = own
            decoder.beginSection(.request)
            request.reset()
            return
        }
        let stream = stream(id)
        headStream = stream.map(Unmanaged.passUnretained)
        if role == .client, stream?.awaitedMethod != nil {
            decoder.beginSection(.response)
            response.reset()
        } else {
            decoder.beginSection(.trailers)
            trailers.reset()
        }
    }

    func field(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        guard headStream != nil, !isTerminating else { return }
        switch decoder.section {
        case .request: decoder.add(name, value, to: &request.fields, limits: rules.limits)
        case .response: decoder.add(name, value, to: &response.fields, limits: rules.limits)
        case .trailers: decoder.add(name, value, to: &trailers, limits: rules.limits)
        }
        // Byte-sized references to fields of kilobytes: an attack on our memory.
        if decoder.size > 16 * rules.limits.head { calm() }
    }

    func frameReceived(_ frame: borrowing nghttp2_frame) {
        guard !isTerminating else { return }
        switch Int32(frame.hd.type) {
        case 0:
            if frame.hd.flags & Http2FrameHeads.padded != 0, !countPadding(frame) { return }
            if frame.hd.flags & 0x1 != 0, let stream = stream(frame.hd.stream_id) { endInput(stream, nil) }
        case 1:
            guard let stream = headStream?.takeUnretainedValue() else { return }
            headStream = nil
            if stream.isOpen { headEnded(stream, endsStream: frame.hd.flags & 0x1 != 0) }
        case 4: if frame.hd.flags & 0x1 == 0 { handler.settingsReceived() }
        case 6: if frame.hd.flags & 0x1 != 0 { pingAcknowledged(frame) }
        case 7:
            if frame.goaway.error_code == Http2Session.http11Required { requiresHttp1 = true }
            lastProcessed = frame.goaway.last_stream_id
            handler.goAwayReceived()
        default: break
        }
    }

    /// Counts a DATA frame of padding alone like an empty one: it moves no content. Returns false if there were too many. RFC 9113
    /// §10.5.
    private func countPadding(_ frame: borrowing nghttp2_frame) -> Bool {
        guard frame.hd.flags & 0x1 == 0, frame.hd.length <= frame.data.padlen else { return true }
        if budget.takeFrame(.emptyData, now: handler.now) { return true }
        calm()
        return false
    }

    private func headEnded(_ stream: Http2Stream, endsStream: Bool) {
        do throws(Http2Fault) {
            switch decoder.section {
            case .request:
                try decoder.finish(&request, endsStream: endsStream, rules)
                stream.contentLeft = request.content.isEmpty ? nil : decoder.contentLength
                stream.hasEndedInput = endsStream
                stream.requestReceived(&request, endsStream: endsStream)
            case .response:
                try decoder.finish(&response, to: stream.awaitedMethod ?? .get, endsStream: endsStream)
                if !response.status.isInterim { stream.contentLeft = decoder.contentLength }
                stream.hasEndedInput = endsStream
                stream.responseReceived(&response, endsStream: endsStream)
            case .trailers:
                try decoder.finish(&trailers, endsStream: endsStream)
                endInput(stream, trailers.isEmpty ? nil : trailers)
            }
        } catch {
            refuse(stream, error, endsStream: endsStream)
        }
    }

    private func refuse(_ stream: Http2Stream, _ fault: Http2Fault, endsStream: Bool) {
        if decoder.section == .request {
            decoder.keepRead(of: &request)
            switch fault {
            case .malformed:
                reset(stream, NGHTTP2_PROTOCOL_ERROR)
                return stream.requestRefused(fault.inRequest(rules.limits), &request, isAnswered: false)
            case .refusedHead, .refused:
                stream.hasEndedInput = endsStream
                return stream.requestRefused(fault.inRequest(rules.limits), &request, isAnswered: true)
            }
        }
        reset(stream, NGHTTP2_PROTOCOL_ERROR)
        let section: HeadFault.Section = decoder.section == .trailers ? .trailers : .head
        stream.broke(
            role == .server
                ? fault.inRequest(rules.limits, section: section) : fault.inResponse(rules.limits, section: section))
    }

    /// RFC 9113 §8.1.1: "MUST be treated as a stream error of type PROTOCOL_ERROR".
    private func malformed(_ stream: Http2Stream, _ reason: String) {
        reset(stream, NGHTTP2_PROTOCOL_ERROR)
        stream.broke(role == .server ? .malformed(reason) : .badResponse(reason))
    }

    private func endInput(_ stream: Http2Stream, _ trailers: HttpFields?) {
        guard !stream.hasEndedInput else { return }
        guard stream.contentLeft ?? 0 == 0 else { return malformed(stream, "the content is shorter than announced") }
        stream.hasEndedInput = true
        stream.endReceived(trailers)
    }

    func contentReceived(_ id: Int32, _ bytes: UnsafeRawBufferPointer) {
        nghttp2_session_consume_connection(session, bytes.count)
        guard !isTerminating, let stream = stream(id) else { return }
        if stream.endsEarly == .left, !earlyEnds.discard(bytes.count, of: stream) {
            return reset(stream, NGHTTP2_NO_ERROR)
        }
        if !stream.received(bytes) { malformed(stream, "the content is longer than announced") }
    }

    func streamClosed(_ id: Int32, _ code: UInt32) {
        guard let own = nghttp2_session_get_stream_user_data(session, id) else { return }
        // `streams` retains it until `leave` has removed it.
        Unmanaged<Http2Stream>.fromOpaque(own)._withUnsafeGuaranteedRef { streamClosed($0, code) }
    }

    @inline(__always)
    private func streamClosed(_ stream: Http2Stream, _ code: UInt32) {
        // A client that has its whole response may close the stream.
        let isOurs = stream.isGivenUp || stream.endsEarly == .left
        let awaitsWord = stream.endsEarly == .left && stream.hasEndedInput && !isTerminating
        leave(stream, code)
        if awaitsWord {
            submit(ping: earlyEnds.nextPing())
            wantToSend()
        }
        if code != NGHTTP2_NO_ERROR.rawValue, !isTerminating, !isOurs, !budget.takeFrame(.reset, now: handler.now) {
            calm()
        }
    }

    /// Removes a stream from the list. After this call, the object may be unused, or carry another stream.
    private func leave(_ stream: Http2Stream, _ code: UInt32) {
        if headStream?.toOpaque() == Unmanaged.passUnretained(stream).toOpaque() { headStream = nil }
        if !stream.hasEndedInput {
            if abandoned.count == Http2Session.mostAbandoned { abandoned.removeFirst() }
            abandoned.append(stream.id)
        }
        // The list's own reference is moved, so that none has to be counted.
        var left = streams.removeLast()
        if left !== stream {
            left.place = stream.place
            swap(&left, &streams[stream.place])
        }
        earlyEnds.remove(stream)
        budget.earnEnd()
        stream.place = -1
        stream.id = 0
        stream.closed(code)
        handler.streamClosed(left)
    }

    /// Ends all streams, because the connection has closed.
    func closeStreams() {
        // A client that leaves within a head was not refused.
        if session == nil || nghttp2_session_want_read(session) == 0 {
            breakHead(.malformed("HTTP/2 was violated within the head"))
        }
        isTerminating = true
        headStream = nil
        while let stream = streams.last {
            nghttp2_session_set_stream_user_data(session, stream.id, nil)
            leave(stream, NGHTTP2_CANCEL.rawValue)
        }
    }

    /// Whether a stream ended because the peer did not process its request. RFC 9113 §8.7.
    static func isRefusal(_ code: UInt32) -> Bool { code == NGHTTP2_REFUSED_STREAM.rawValue }

    /// Whether a stream ended because the peer wants its request by HTTP/1.1, as the stream's own reset or that of the whole connection
    /// says. RFC 9113 §7.
    func wantsHttp1(_ code: UInt32) -> Bool {
        code == Http2Session.http11Required || requiresHttp1 && Http2Session.isRefusal(code)
    }

    private static let http11Required = NGHTTP2_HTTP_1_1_REQUIRED.rawValue

    // MARK: Content

    func takeContent(_ stream: Http2Stream, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
        guard let (count, isLast, trailers) = stream.nextFrame(atMost: length) else {
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        if count > 0 { flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue }
        guard isLast else { return count }
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        if let trailers {
            flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
            _ = lines.pointee.withTrailers(trailers) { lines in
                nghttp2_submit_trailer(session, stream.id, lines.first, lines.count)
            }
        }
        return count
    }

    func sendContent(_ stream: Http2Stream, _ frameHead: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
        guard let handler, !handler.isOutputFull else { return NGHTTP2_ERR_WOULDBLOCK.rawValue }
        budget.earn(bytes: count)
        stream.write(frameHead, count, to: handler)
        return 0
    }
}
