import CHiredis
import HttpWare

/// Makes replies of the bytes that a Redis server sends, whatever they are. The reader is hiredis'; the objects are ours, so
/// that what a length promises takes no room before it is there, and every length is bounded.
///
/// Used on one thread. It must not move on after a throw.
final class RedisReplyReader {
    /// What was sent is no reply, or a larger one than any command of ours has.
    struct Fault: Error {}

    /// The most members and strings of one reply.
    static let mostObjects = 65_536
    /// The most bytes of one reply.
    static let mostBytes = 8 << 20

    private let reader: UnsafeMutablePointer<redisReader>
    private var objects = 0
    private var bytes = 0

    /// `nil` without memory.
    init?() {
        guard let reader = redisReaderCreateWithFunctions(RedisReplyReader.functions) else { return nil }
        self.reader = reader
        // Not retained: what uses it is called within `next` only.
        reader.pointee.privdata = Unmanaged.passUnretained(self).toOpaque()
    }

    /// hiredis lets go of a reply that is not whole, by `freeReply`.
    deinit { redisReaderFree(reader) }

    /// Takes what came. Copied.
    func feed(_ input: UnsafeRawBufferPointer) throws(Fault) {
        guard redisReaderFeed(reader, input.baseAddress?.assumingMemoryBound(to: CChar.self), input.count) == REDIS_OK
        else { throw Fault() }
    }

    /// The next reply that is whole; `nil` when more has to come.
    func next() throws(Fault) -> RedisReply? {
        var reply: UnsafeMutableRawPointer?
        guard redisReaderGetReply(reader, &reply) == REDIS_OK else { throw Fault() }
        if let reply { return Unmanaged<RedisObject>.fromOpaque(reply).takeRetainedValue().reply }
        // What waits is one reply that is not whole.
        guard reader.pointee.len - min(reader.pointee.pos, reader.pointee.len) <= RedisReplyReader.mostBytes else {
            throw Fault()
        }
        return nil
    }

    /// Whether there is room for an object of the reply that is read.
    fileprivate func admits(_ task: redisReadTask, members: Int = 0, bytes count: Int = 0) -> Bool {
        if task.parent == nil {
            objects = 0
            bytes = 0
        }
        objects += 1
        bytes += count
        return objects + members <= RedisReplyReader.mostObjects && bytes <= RedisReplyReader.mostBytes
    }

    /// For the life of the process: hiredis keeps the pointer in every reader. Never changed after it was made.
    private nonisolated(unsafe) static let functions: UnsafeMutablePointer<redisReplyObjectFunctions> = {
        let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
        functions.initialize(
            to: redisReplyObjectFunctions(
                createString: makeString, createArray: makeArray, createInteger: makeInteger, createNil: makeNil,
                freeObject: freeReply))
        return functions
    }()
}

/// A reply, or a part of one, while hiredis reads it. The outermost is retained for hiredis; each array holds its members.
private final class RedisObject {
    private let value: RedisReply?
    private var members: [RedisObject] = []

    init(_ value: RedisReply?) { self.value = value }

    /// No deeper than hiredis reads: eight arrays within each other.
    var reply: RedisReply { value ?? .array(members.map(\.reply)) }

    /// Puts it where the reader wants it: `nil`, which ends the reading, where there is no room.
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
        // Held by its array from now on, so the pointer lasts as long as the reader may use it.
        Unmanaged<RedisObject>.fromOpaque(array)._withUnsafeGuaranteedRef { $0.members.append(object) }
        return Unmanaged.passUnretained(object).toOpaque()
    }
}

// C callbacks stand outside of any isolated context: inside one they would check for it at run time and trap.

private func makeString(
    _ task: UnsafePointer<redisReadTask>?, _ start: UnsafeMutablePointer<CChar>?, _ count: Int
) -> UnsafeMutableRawPointer? {
    guard let start, count >= 0 else { return nil }
    return RedisObject.put(task, bytes: count) {
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        guard task?.pointee.type == REDIS_REPLY_ERROR else { return .bytes(Array(bytes)) }
        return .error(String(decoding: bytes.prefix(1024), as: UTF8.self))
    }
}

private func makeArray(_ task: UnsafePointer<redisReadTask>?, _ count: Int32) -> UnsafeMutableRawPointer? {
    RedisObject.put(task, members: Int(count)) { nil }
}

private func makeInteger(_ task: UnsafePointer<redisReadTask>?, _ number: Int64) -> UnsafeMutableRawPointer? {
    RedisObject.put(task) { .integer(number) }
}

private func makeNil(_ task: UnsafePointer<redisReadTask>?) -> UnsafeMutableRawPointer? {
    RedisObject.put(task) { .null }
}

/// Called for the outermost object only: of a reply that does not become whole.
private func freeReply(_ object: UnsafeMutableRawPointer?) {
    if let object { Unmanaged<RedisObject>.fromOpaque(object).release() }
}
