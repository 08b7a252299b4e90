@testable import HttpCaching
@testable import HttpWare
@testable import HttpWareRedis
@testable import GatewayWares

/// Replies that a Redis server may send.
extension Fuzzing {
    /// Reads the input as replies, whole and in pieces: the same ones, up to the same fault. Their content is then read as what
    /// stores keep and tell there.
    public static func redisReply(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let whole = replies(wire, by: max(1, wire.count))
        let pieces = replies(wire, by: choice % 7 + 1)
        require(whole.replies == pieces.replies, "in pieces it is read otherwise")
        require(whole.isRefused == pieces.isRefused, "in pieces it is refused otherwise")
        for reply in whole.replies {
            use(reply)
            find(reply)
        }
    }

    /// Answers of sentinels and nodes about the places of servers.
    private static func find(_ reply: RedisReply) {
        if let map = RedisMap(clusterSlots: reply, from: .host("127.0.0.1", port: 1)) {
            require((1...RedisMap.mostMasters).contains(map.masters.count), "a map has too many masters, or none")
            for slot in [0, 1, 8191, 16_383, 16_384, UInt16.max] {
                guard let master = map.master(of: slot) else { continue }
                require(
                    slot < RedisSlot.count && map.contains(master.place), "a slot has a master that is not on the map")
            }
        }
        if let place = RedisUrl.Place(masterAddress: reply) { check(place) }
        _ = reply.replicasOfMaster
        guard let bytes = reply.bytes else {
            if case .error(let text) = reply { redirect(text) }
            return
        }
        redirect(String(decoding: bytes, as: UTF8.self))
        require(RedisSlot.of(bytes) < RedisSlot.count, "there is no such slot")
    }

    private static func redirect(_ text: String) {
        switch RedisRedirect(text) {
        case .moved(let place?), .asked(let place):
            check(place)
            if case .host(let host, _) = place { require(text.contains(host), "a place is read otherwise") }
        default: return
        }
    }

    private static func check(_ place: RedisUrl.Place) {
        guard case .host(let host, let port) = place else { return require(false, "a server names a path") }
        require(port > 0, "there is no port 0")
        require(host.utf8.allSatisfy { (0x2d...0x7a).contains($0) }, "a host has other characters")
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
