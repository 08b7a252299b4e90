import CHiredis
import HttpWare

/// Decodes replies from the bytes of a Redis server, whatever they are. The parser is hiredis', but the objects are made
/// here: so a stated length takes no memory before its bytes arrive, and every length is limited.
///
/// Used on one thread. Must not be used after it has thrown.
final class RedisReplyReader {
    /// The bytes are not a reply, or a larger one than any command here can have.
    struct Fault: Error {}

    /// The maximum number of members and strings of one reply.
    static let mostObjects = 65_536
    /// The maximum size of one reply, in bytes.
    static let mostBytes = 8 << 20
    /// The maximum number of arrays around a value. Version 1 of hiredis knows no limit.
    static let mostNested = 8

    private let reader: UnsafeMutablePointer<redisReader>
    private var objects = 0
    private var bytes = 0

    /// `nil` if there is no memory.
    init?() {
        guard let reader = redisReaderCreateWithFunctions(RedisReplyReader.functions) else { return nil }
        self.reader = reader
        // Not retained, because it is used only during `next`.
        reader.pointee.privdata = Unmanaged.passUnretained(self).toOpaque()
    }

    /// hiredis releases an incomplete reply by `freeReply`.
    deinit { redisReaderFree(reader) }

    /// Takes received bytes. They are copied.
    func feed(_ input: UnsafeRawBufferPointer) throws(Fault) {
        guard redisReaderFeed(reader, input.baseAddress?.assumingMemoryBound(to: CChar.self), input.count) == REDIS_OK
        else { throw Fault() }
    }

    /// The next complete reply; `nil` if more bytes are needed.
    func next() throws(Fault) -> RedisReply? {
        var reply: UnsafeMutableRawPointer?
        guard redisReaderGetReply(reader, &reply) == REDIS_OK else { throw Fault() }
        if let reply { return Unmanaged<RedisObject>.fromOpaque(reply).takeRetainedValue().reply }
        // The remaining bytes are one incomplete reply.
        guard reader.pointee.len - min(reader.pointee.pos, reader.pointee.len) <= RedisReplyReader.mostBytes else {
            throw Fault()
        }
        return nil
    }

    /// Whether there is room for another object of the current reply.
    fileprivate func admits(_ task: redisReadTask, members: Int = 0, bytes count: Int = 0) -> Bool {
        if task.parent == nil {
            objects = 0
            bytes = 0
        }
        objects += 1
        bytes += count
        var depth = 0
        var outer = task.parent
        while let array = outer {
            depth += 1
            outer = array.pointee.parent
        }
        guard depth <= RedisReplyReader.mostNested else { return false }
        return objects + members <= RedisReplyReader.mostObjects && bytes <= RedisReplyReader.mostBytes
    }

    /// Exists for the life of the process, because hiredis keeps the pointer in every reader. Never changed after its
    /// creation.
    private nonisolated(unsafe) static let functions: UnsafeMutablePointer<redisReplyObjectFunctions> = {
        let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
        functions.initialize(to: redisReplyObjectFunctions())
        functions.pointee.createString = makeString
        functions.pointee.createArray = makeArray
        functions.pointee.createInteger = makeInteger
        functions.pointee.createNil = makeNil
        functions.pointee.freeObject = freeReply
        redis_refuse_resp3(functions)
        return functions
    }()
}

/// A reply, or a part of one, during parsing. The outermost object is retained for hiredis; each array retains its members.
private final class RedisObject {
    private let value: RedisReply?
    private var members: [RedisObject] = []

    init(_ value: RedisReply?) { self.value = value }

    /// The reply. The recursion is bounded by `mostNested`.
    var reply: RedisReply { value ?? .array(members.map(\.reply)) }

    /// Adds an object to the array that the parser is reading. Returns `nil`, which ends the parsing, if there is no room.
    static func put(
        _ task: UnsafePointer<redisReadTask>?, members: Int = 0, bytes: Int = 0, _ value: () -> RedisReply?
    ) -> UnsafeMutableRawPointer? {
        guard let task = task?.pointee, let owner = task.privdata else { return nil }
        let hasRoom = Unmanaged<RedisReplyReader>.fromOpaque(owner)._withUnsafeGuaranteedRef {
            $0.admits(task, members: members, bytes: bytes)
        }
        guard hasRoom else { return nil }
        let object = RedisObject(value())
        guard let parent = task.parent else {
            return Unmanaged.passRetained(object).toOpaque()  // released by next(), or by freeReply
        }
        guard let array = parent.pointee.obj else { return nil }
        // Its array retains it from now on, so that the pointer is valid as long as the reader may use it.
        Unmanaged<RedisObject>.fromOpaque(array)._withUnsafeGuaranteedRef { $0.members.append(object) }
        return Unmanaged.passUnretained(object).toOpaque()
    }
}

// C callbacks are outside any isolated context: inside one, they would check their isolation at run time and trap.

private func makeString(
    _ task: UnsafePointer<redisReadTask>?, _ start: UnsafeMutablePointer<CChar>?, _ count: Int
) -> UnsafeMutableRawPointer? {
    guard let start, count >= 0, let type = task?.pointee.type else { return nil }
    guard type == REDIS_REPLY_STRING || type == REDIS_REPLY_STATUS || type == REDIS_REPLY_ERROR else { return nil }
    return RedisObject.put(task, bytes: count) {
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        guard type == REDIS_REPLY_ERROR else { return .bytes(Array(bytes)) }
        return .error(String(decoding: bytes.prefix(1024), as: UTF8.self))
    }
}

private func makeArray(_ task: UnsafePointer<redisReadTask>?, _ count: redis_member_count) -> UnsafeMutableRawPointer? {
    // hiredis also reads the maps, sets and pushes of RESP3.
    guard task?.pointee.type == REDIS_REPLY_ARRAY else { return nil }
    return RedisObject.put(task, members: Int(clamping: count)) { nil }
}

private func makeInteger(_ task: UnsafePointer<redisReadTask>?, _ number: Int64) -> UnsafeMutableRawPointer? {
    RedisObject.put(task) { .integer(number) }
}

private func makeNil(_ task: UnsafePointer<redisReadTask>?) -> UnsafeMutableRawPointer? {
    RedisObject.put(task) { .null }
}

/// Called only for the outermost object of a reply that stays incomplete.
private func freeReply(_ object: UnsafeMutableRawPointer?) {
    if let object { Unmanaged<RedisObject>.fromOpaque(object).release() }
}
