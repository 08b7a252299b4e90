extension SocketConnection {
    /// Frames the `count` bytes that `content` sends as one chunk. RFC 9112 §7.1.
    @inline(__always)
    final func sendChunk(_ count: Int, _ content: () -> Void) {
        sendHead(ChunkWriter.mostHead) { ChunkWriter.writeHead(of: count, to: &$0) }
        content()
        send(ChunkWriter.end)
    }

    /// Sends the last chunk and the trailer section.
    @inline(__always)
    final func sendLastChunk(_ trailers: HttpFields?) {
        sendHead(ChunkWriter.mostLast(trailers)) { ChunkWriter.writeLast(trailers, to: &$0) }
    }
}
