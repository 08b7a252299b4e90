public import HttpWare
import Synchronization

/// The buffer of log lines until the writer's thread takes them: one for each output of the process.
///
/// A line is built in the shard of its loop, under a lock. Only the writer also takes that lock, for the moment in which
/// it takes the shard's block. The queue of full blocks is bounded: if the output is slower than the lines, lines are
/// dropped and counted, and no loop waits.
public final class LogSink: Sendable {
    /// The place where lines are written.
    public let output: LogOutput

    /// The maximum number of bytes that wait: about a second of lines at the highest rates.
    static let queueLimit = 16 << 20

    private struct Shard {
        var block: LogBlock?
        var time = LogTime()
    }

    private final class ShardBox: Sendable {
        let owner = Atomic<UInt>(0)
        let state = Mutex(Shard())
    }

    struct Queue {
        var blocks: [LogBlock] = []
        var spares: [LogBlock] = []
        var bytes = 0
        var dropped = 0
    }

    /// The number of lines that were not written, since the start.
    let droppedLines = Atomic(0)
    private let shards: [ShardBox]
    private let queue = Mutex(Queue())
    private let writer: LogWriter
    private let queueLimit: Int

    init(_ output: LogOutput, writer: LogWriter, queueLimit: Int = LogSink.queueLimit) {
        self.output = output
        self.writer = writer
        self.queueLimit = queueLimit
        shards = (0..<32).map { _ in ShardBox() }
    }

    // MARK: Writing lines

    /// Builds one line, including its line end. Each loop has its own shard, which `owner` selects.
    @inline(__always)
    func append(_ owner: ObjectIdentifier, _ write: (inout LogLine, inout LogTime) -> Void) {
        let isFirst = shard(of: owner).state.withLock { shard in
            let block = shard.block ?? takeSpare(&shard)
            let isFirst = block.count == 0
            block.append { line in write(&line, &shard.time) }
            if block.count >= LogBlock.size {
                shard.block = nil
                enqueue(block)
                return true
            }
            return isFirst
        }
        if isFirst { writer.noteLines() }
    }

    /// Appends a complete line without its line end; for logs with few lines.
    public func append(text: String) {
        append(ObjectIdentifier(self)) { line, _ in
            var text = text
            text.withUTF8 { bytes in
                if let start = bytes.baseAddress { line.raw(start, bytes.count) }
            }
            line.byte(0x0a)
        }
    }

    @inline(__always)
    private func shard(of owner: ObjectIdentifier) -> ShardBox {
        let id = UInt(bitPattern: owner)
        var index = Int(truncatingIfNeeded: id >> 4 &* 0x9e37_79b9 >> 7) & 31
        for _ in 0..<4 {
            let found = shards[index].owner.load(ordering: .relaxed)
            if found == id { return shards[index] }
            if found == 0, shards[index].owner.compareExchange(expected: 0, desired: id, ordering: .relaxed).exchanged {
                return shards[index]
            }
            index = (index &+ 1) & 31
        }
        return shards[index]  // shared with another loop: slower, but correct
    }

    @inline(never)
    private func takeSpare(_ shard: inout Shard) -> LogBlock {
        let block = queue.withLock { $0.spares.popLast() } ?? LogBlock()
        shard.block = block
        return block
    }

    private func enqueue(_ block: LogBlock) {
        let isDropped = queue.withLock { queue in
            if queue.bytes + block.count > queueLimit {
                queue.dropped += block.lines
                return true
            }
            queue.bytes += block.count
            queue.blocks.append(block)
            return false
        }
        guard isDropped else { return writer.noteFullBlock() }
        droppedLines.add(block.lines, ordering: .relaxed)
        giveBack(block)
    }

    // MARK: For the writer

    /// Takes all waiting blocks, and the number of lines dropped since the last call.
    func takeAll() -> (blocks: [LogBlock], dropped: Int) {
        for box in shards where box.owner.load(ordering: .relaxed) != 0 {
            box.state.withLock { shard in
                guard let block = shard.block, block.count > 0 else { return }
                shard.block = nil
                queue.withLock { queue in
                    queue.bytes += block.count
                    queue.blocks.append(block)
                }
            }
        }
        return queue.withLock { queue in
            defer {
                queue.blocks = []
                queue.dropped = 0
            }
            return (queue.blocks, queue.dropped)
        }
    }

    /// Called when the block's lines were written or lost, so that other lines can wait in their place.
    func finished(_ block: LogBlock, bytes: Int) {
        queue.withLock { $0.bytes -= bytes }
        giveBack(block)
    }

    private func giveBack(_ block: LogBlock) {
        guard block.capacity <= 4 * LogBlock.size else { return }
        block.clear()
        queue.withLock { queue in
            if queue.spares.count < 8 { queue.spares.append(block) }
        }
    }
}

extension LogSink: WareCounter {
    public var numbers: [WareNumber] {
        [
            WareNumber(
                "httpware_log_lines_dropped_total", "Lines of an access log that were not written.",
                droppedLines.load(ordering: .relaxed))
        ]
    }
}
