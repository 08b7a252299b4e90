public import HttpCaching
public import HttpWare

extension StoredResponse {
    /// The content as a client would have it, read on that loop through its source; `nil` where it is cut off.
    public func read(_ part: Range<Int>? = nil, on loop: EventLoop) async -> [UInt8]? {
        switch content {
        case .bytes(let bytes): return part.map { Array(bytes[$0]) } ?? bytes
        case .elsewhere(let reader):
            let source = reader.source(of: part ?? 0..<reader.count)
            return await Task(executorPreference: loop) { await source.read(atMost: .max) }.value
        }
    }
}
