import CNghttp2

/// The libnghttp2 objects that all sessions share: made once and never freed.
struct Http2Library: @unchecked Sendable {
    // Unchecked: both are written in `init` only, and libnghttp2 copies them.

    static let shared = Http2Library()
    let callbacks: OpaquePointer?
    let options: OpaquePointer?

    private init() {
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, frameBegan)
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, headBegan)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, fieldReceived)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frameReceived)
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, frameRefused)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, contentReceived)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, streamClosed)
        nghttp2_session_callbacks_set_send_data_callback(callbacks, sendContent)
        self.callbacks = callbacks
        var options: OpaquePointer?
        nghttp2_option_new(&options)
        // The windows are opened when an exchange has taken the content: flow control is backpressure.
        nghttp2_option_set_no_auto_window_update(options, 1)
        // The meaning of fields is checked in this module, for both directions.
        nghttp2_option_set_no_http_messaging(options, 1)
        nghttp2_option_set_no_closed_streams(options, 1)
        // Every head within our own limits must be sendable: a listener's limit is 1 MiB at most.
        nghttp2_option_set_max_send_header_block_length(options, 16 << 20)
        // Floods are counted here, and answered with their own error code. libnghttp2 1.52 counts a CONTINUATION again with each piece
        // of its head that arrives: up to nine times.
        nghttp2_option_set_max_continuations(options, (Http2FrameBudget.mostContinuations + 1) * 9)
        nghttp2_option_set_stream_reset_rate_limit(options, 1 << 20, 1 << 20)
        self.options = options
    }
}

// C callbacks are outside any isolated context: inside one, they would check for it at run time and trap.

@inline(__always)
private func tell<Value>(_ argument: UnsafeMutableRawPointer?, _ call: (Http2Session) -> Value, otherwise: Value)
    -> Value
{
    guard let argument else { return otherwise }
    return Unmanaged<Http2Session>.fromOpaque(argument)._withUnsafeGuaranteedRef { call($0) }
}

private func frameBegan(
    _: OpaquePointer?, _ head: UnsafePointer<nghttp2_frame_hd>?, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    if let head { tell(argument, { $0.frameBegan(head.pointee) }, otherwise: ()) }
    return 0
}

private func headBegan(_: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ argument: UnsafeMutableRawPointer?)
    -> Int32
{
    if let frame { tell(argument, { $0.headBegan(frame.pointee) }, otherwise: ()) }
    return 0
}

private func fieldReceived(
    _: OpaquePointer?, _: UnsafePointer<nghttp2_frame>?, _ name: UnsafePointer<UInt8>?, _ nameCount: Int,
    _ value: UnsafePointer<UInt8>?, _ valueCount: Int, _: UInt8, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    tell(
        argument,
        {
            $0.field(
                UnsafeRawBufferPointer(start: name, count: nameCount),
                UnsafeRawBufferPointer(start: value, count: valueCount))
        }, otherwise: ())
    return 0
}

private func frameReceived(
    _: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    if let frame { tell(argument, { $0.frameReceived(frame.pointee) }, otherwise: ()) }
    return 0
}

private func frameRefused(
    _: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ code: Int32, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    if let frame { tell(argument, { $0.frameRefused(frame.pointee, code) }, otherwise: ()) }
    return 0
}

private func contentReceived(
    _: OpaquePointer?, _: UInt8, _ id: Int32, _ bytes: UnsafePointer<UInt8>?, _ count: Int,
    _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    tell(argument, { $0.contentReceived(id, UnsafeRawBufferPointer(start: bytes, count: count)) }, otherwise: ())
    return 0
}

private func streamClosed(_: OpaquePointer?, _ id: Int32, _ code: UInt32, _ argument: UnsafeMutableRawPointer?) -> Int32
{
    tell(argument, { $0.streamClosed(id, code) }, otherwise: ())
    return 0
}

func readContent(
    _: OpaquePointer?, _: Int32, _: UnsafeMutablePointer<UInt8>?, _ length: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ argument: UnsafeMutableRawPointer?
) -> Int {
    guard let flags, let pointer = source?.pointee.ptr else { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
    // The stream cannot end inside this call.
    return Unmanaged<Http2Stream>.fromOpaque(pointer)._withUnsafeGuaranteedRef { stream in
        tell(argument, { $0.takeContent(stream, length, flags) }, otherwise: Int(NGHTTP2_ERR_DEFERRED.rawValue))
    }
}

private func sendContent(
    _: OpaquePointer?, _ frame: UnsafeMutablePointer<nghttp2_frame>?, _ frameHead: UnsafePointer<UInt8>?, _ count: Int,
    _ source: UnsafeMutablePointer<nghttp2_data_source>?, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let frameHead, let pointer = source?.pointee.ptr else { return 0 }
    let stream = Unmanaged<Http2Stream>.fromOpaque(pointer).takeUnretainedValue()
    return tell(argument, { $0.sendContent(stream, frameHead, count) }, otherwise: 0)
}
