import CHiredis
import HttpWare

/// A part of a command: text, a number, or any bytes.
public struct RedisArgument: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ text: String) { bytes = Array(text.utf8) }
    public init(_ number: Int) { self.init(String(number)) }
    /// A duration in whole milliseconds, at least 1.
    public init(milliseconds duration: Duration) { self.init(max(1, Int(clamping: duration.nanoseconds / 1_000_000))) }
    public init(stringLiteral text: String) { self.init(text) }
    public init(integerLiteral number: Int) { self.init(number) }
}

extension [RedisArgument] {
    /// The command as bytes; `nil` without memory, or if it is empty. hiredis encodes it, so that only hiredis has to know RESP.
    var command: [UInt8]? {
        guard !isEmpty else { return nil }
        let lengths = map(\.bytes.count)
        var words: [UInt8] = []
        words.reserveCapacity(lengths.reduce(0, +))
        for argument in self { words += argument.bytes }
        return words.withUnsafeBytes { words -> [UInt8]? in
            guard var next = words.baseAddress?.assumingMemoryBound(to: CChar.self) else { return nil }
            var places: [UnsafePointer<CChar>?] = []
            for length in lengths {
                places.append(next)
                next += length
            }
            var target: UnsafeMutablePointer<CChar>?
            let count = redisFormatCommandArgv(&target, Int32(lengths.count), &places, lengths)
            guard count > 0, let target else { return nil }
            defer { redisFreeCommand(target) }
            return [UInt8](UnsafeRawBufferPointer(start: target, count: Int(count)))
        }
    }
}
