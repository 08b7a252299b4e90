@testable import HttpCaching
@testable import HttpWare
@testable import HttpWareRedis
@testable import Wares

/// What a Redis server may send.
extension Fuzzing {
    /// Reads the input as replies, whole and in pieces: the same ones, up to the same fault. What is in them is then read as what
    /// stores keep and tell there.
    public static func redisReply(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let whole = replies(wire, by: max(1, wire.count))
        let pieces = replies(wire, by: choice % 7 + 1)
        require(whole.replies == pieces.replies, "in pieces it is read otherwise")
        require(whole.isRefused == pieces.isRefused, "in pieces it is refused otherwise")
        for reply in whole.replies { use(reply) }
    }

    private static func replies(_ wire: [UInt8], by step: Int) -> (replies: [RedisReply], isRefused: Bool) {
        guard let reader = RedisReplyReader() else { return ([], true) }
        var replies: [RedisReply] = []
        for start in stride(from: 0, to: wire.count, by: step) {
            let piece = Array(wire[start..<min(start + step, wire.count)])
            guard piece.withUnsafeBytes({ (try? reader.feed($0)) != nil }) else { return (replies, true) }
            do throws(RedisReplyReader.Fault) {
                while let reply = try reader.next() { replies.append(reply) }
            } catch {
                return (replies, true)
            }
        }
        return (replies, false)
    }

    private static func use(_ reply: RedisReply) {
        for member in reply.array ?? [] { use(member) }
        guard let bytes = reply.bytes else { return }
        if let found = RedisRecord(bytes) {
            let again = RedisRecord.bytes(found.record.key, found.record.head, length: found.record.length)
            require(again == nil || found.mark + (again ?? []) == bytes, "what was read is written otherwise")
        }
        if case .answered(_, let record)? = IdempotencyValue.read(bytes, for: .zero) {
            let again = IdempotencyRecord(record)?.bytes
            require(again == nil || again == record, "a record was read and is written otherwise")
        }
        _ = RedisRecord.content(reply, at: 0, of: bytes.count)
        _ = RedisChange(bytes, except: [])
    }
}
