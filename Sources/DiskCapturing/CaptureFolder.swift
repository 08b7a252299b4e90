public import Capturing
import Glibc
import HttpWare

// One file: the segments, their marks and the writing thread share one state behind one mutex.
/// Keeps captures in the files of a folder, within a size limit. The files are append-only segments, and the oldest segment is
/// dropped first. One thread writes the captures that loops hand over; a loop never waits for it. Other threads read the files
/// without a lock.
///
/// If the disk is full, or other users can read the folder, writing stops with a warning and is tried again later. Another
/// process may still write to the folder, as the old process of an upgrade does. The folder is then only read, and taken over
/// when it is free. Meanwhile captures wait in memory.
public final class CaptureFolder: CaptureArchive {
    /// The state that loops and threads share. The lock is held only for changes in memory.
    private struct State {
        var segments: [Segment] = []
        var marks: CaptureMarks
        var lastId = 0
        var pending: [KeptCapture] = []
        var pendingBytes = 0
        /// The size of the captures being written.
        var writingBytes = 0
        var isScheduled = false
        var isClosed = false
        /// No captures are accepted before this time, in nanoseconds of the loop's clock.
        var failedUntil: Int64?
        /// Whether another process writes to the folder.
        var isForeign = false
        /// The number of captures that were not written.
        var dropped = 0
    }

    /// The state of the writer. The lock is held while files change.
    private struct Writing {
        var current: SegmentWriter?
        var nextNumber = 1
        var lock: Int32 = -1
        /// Whether the folder has been read.
        var isOpen = false
        /// The message that was logged last.
        var told = ""
    }

    let path: String
    private let maxSize: Int
    private let state: ThreadLock<State>
    private let writing = ThreadLock(Writing())
    private let thread = OffloadQueue(name: "httpware.captures", threads: 1, most: 16)
    private let index = CaptureIndex()

    /// The most memory for captures that wait to be written.
    private static let mostPending = 16 << 20
    private static let retry = Duration.seconds(5)
    /// Captures are gathered in steps of this many microseconds, and in at most this many steps.
    private static let gathering: UInt32 = 2_000
    private static let gatherings = 10
    /// The pause between attempts to take over a folder from another process, in microseconds.
    private static let takeOver: UInt32 = 200_000
    /// The numbers reserved for captures that the other process may still write.
    private static let mostForeign = 1_000_000

    /// The most bytes of one segment.
    private let mostInSegment: Int
    private let mostMarks: Int
    /// The most bytes of all segments. Space for one more segment stays free: the kept captures of an erased segment move there.
    private let mostInSegments: Int

    /// Opens the folder, and makes it if needed.
    public init(_ disk: CaptureDisk) {
        path = disk.path.path
        maxSize = max(1 << 20, disk.maxSize.bytes)
        mostInSegment = min(16 << 20, maxSize / 16)
        mostMarks = min(4 << 20, maxSize / 32)
        // There are two files of marks while one replaces the other.
        mostInSegments = maxSize - mostInSegment - 2 * mostMarks
        state = ThreadLock(State(marks: CaptureMarks(limit: mostMarks)))
        writing.withLock { open(&$0) }
    }

    deinit { close() }

    public var lastId: Int { state.withLock { $0.lastId } }
    /// The number of captures that were not written.
    public var dropped: Int { state.withLock { $0.dropped } }
    /// The size of all segments.
    public var bytes: Int { state.withLock { $0.segments.reduce(0) { $0 + $1.bytes } } }

    // MARK: Opening

    private func open(_ writing: inout Writing) {
        do throws(Trouble) {
            try CaptureFolder.prepare(path)
            guard let lock = try CaptureFolder.lock(path) else { return readForeign(&writing) }
            writing.lock = lock
            let (segments, used) = Segments.read(path)
            writing.nextNumber = used + 1
            writing.isOpen = true
            let marks = CaptureMarks(of: path, limit: mostMarks)
            state.withLock {
                $0.segments = segments
                $0.marks = marks
                $0.lastId = segments.reduce($0.lastId) { max($0, $1.highest) }
                $0.failedUntil = nil
                $0.isForeign = false
            }
            // The limit may be lower than before.
            _ = makeRoom(0, &writing)
        } catch {
            fail(error.description, &writing)
        }
    }

    /// Shows what another process has written so far, and waits until that process ends.
    private func readForeign(_ writing: inout Writing) {
        let isFirst = state.withLock { state in
            defer { state.isForeign = true }
            return !state.isForeign
        }
        guard isFirst else { return }
        let (segments, _) = Segments.read(path, repairs: false)
        let marks = CaptureMarks(of: path, limit: mostMarks)
        state.withLock {
            $0.segments = segments
            $0.marks = marks
            let last = segments.reduce($0.lastId) { max($0, $1.highest) }
            $0.lastId = min(last, .max - CaptureFolder.mostForeign) + CaptureFolder.mostForeign
            $0.failedUntil = nil
        }
        writing.told =
            "is written to by another process; captures stay in memory, and are written here when it has ended"
        WareLog.shared.log(.notice, "captures \(path): \(writing.told)")
        tryAgain()
    }

    /// Tries repeatedly to take over the folder, until it succeeds or the folder is closed. Nothing else is written meanwhile.
    private func tryAgain() {
        let isTaken = thread.submit(
            { [weak self] in
                usleep(CaptureFolder.takeOver)
                guard let self else { return }
                let isLeft = writing.withLock { writing in
                    guard !state.withLock({ $0.isClosed }) else { return false }
                    drain(&writing)
                    return state.withLock { $0.isForeign }
                }
                if isLeft { tryAgain() }
            }, completion: { _ in })
        if !isTaken { state.withLock { $0.isForeign = false } }
    }

    /// Accepts no captures for a while, and logs the reason once.
    private func fail(_ reason: String, _ writing: inout Writing) {
        let until = SystemLoopClock().now().nanoseconds + CaptureFolder.retry.nanoseconds
        let lost = state.withLock { state in
            state.failedUntil = until
            state.isForeign = false
            defer {
                state.dropped += state.pending.count
                state.pending = []
                state.pendingBytes = 0
            }
            return state.pending.count
        }
        guard writing.told != reason else { return }
        writing.told = reason
        WareLog.shared.log(
            .warning,
            "captures \(path): \(reason); nothing more is kept there until this is fixed"
                + (lost > 0 ? ", and \(lost) captures were not written" : ""))
    }

    // MARK: Writing

    public func put(_ capture: KeptCapture) {
        let size = capture.memory
        let isFirst = state.withLock { state -> Bool in
            if state.isClosed { return false }
            if let until = state.failedUntil, until > SystemLoopClock().now().nanoseconds {
                state.dropped += 1
                return false
            }
            guard state.pendingBytes + state.writingBytes + size <= CaptureFolder.mostPending || state.pending.isEmpty
            else {
                state.dropped += 1
                return false
            }
            state.pending.append(capture)
            state.pendingBytes += size
            state.lastId = max(state.lastId, capture.id)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if isFirst { schedule() }
    }

    private func schedule() {
        let isTaken = thread.submit(
            {
                // The first capture after a pause is written at once: a process that takes over reads it.
                while self.writing.withLock({ self.drainOnce(&$0) }) { self.gather() }
            }, completion: { _ in })
        if !isTaken { state.withLock { $0.isScheduled = false } }
    }

    /// Waits until there are several captures to write: each write, and each change between threads, takes longer than a capture.
    private func gather() {
        for _ in 0..<CaptureFolder.gatherings {
            if state.withLock({ $0.pendingBytes > CaptureFolder.mostPending / 4 || $0.isClosed }) { return }
            usleep(CaptureFolder.gathering)
        }
    }

    /// Writes all waiting captures.
    private func drain(_ writing: inout Writing) {
        while drainOnce(&writing) {}
    }

    /// Writes the captures that wait now. Returns false if there were none, or if they cannot be written.
    private func drainOnce(_ writing: inout Writing) -> Bool {
        if !writing.isOpen, !state.withLock({ $0.isClosed }) { open(&writing) }
        // Captures that wait for the folder stay in memory.
        if !writing.isOpen, state.withLock({ $0.isForeign }) { return false }
        let batch = state.withLock { state -> [KeptCapture] in
            if state.pending.isEmpty { state.isScheduled = false }
            // The batch counts until it is written.
            state.writingBytes = state.pendingBytes
            state.pendingBytes = 0
            defer { state.pending = [] }
            return state.pending
        }
        if batch.isEmpty { return false }
        guard writing.isOpen else {
            state.withLock {
                $0.isScheduled = false
                $0.writingBytes = 0
                $0.dropped += batch.count
            }
            return false
        }
        write(batch, &writing)
        state.withLock { $0.writingBytes = 0 }
        return true
    }

    private func write(_ batch: [KeptCapture], _ writing: inout Writing) {
        var lost = 0
        do throws(SystemError) {
            for capture in batch {
                let (row, rest) = bytes(of: capture.exchange)
                let needed = SegmentWriter.room(row: row.count, data: rest.count)
                if let current = writing.current, current.bytes + needed > mostInSegment {
                    try finish(&writing)
                }
                guard makeRoom(needed + Segment.headBytes, &writing) else {
                    lost += 1
                    continue
                }
                if writing.current == nil { writing.current = try begin(&writing) }
                try writing.current?.append(id: capture.id, row: row, data: rest)
            }
            try writing.current?.flush()
            publish(&writing)
            if writing.told != "" {
                writing.told = ""
                WareLog.shared.log(.notice, "captures \(path): captures are kept again")
            }
        } catch {
            publish(&writing)
            lost += 1
            fail("cannot be written: \(error)", &writing)
        }
        if lost > 0 { state.withLock { $0.dropped += lost } }
    }

    /// The bytes of a capture. A capture larger than a segment is written without its content.
    private func bytes(of capture: CapturedExchange) -> (row: [UInt8], rest: [UInt8]) {
        let largest = mostInSegment - 4096
        var capture = capture
        var (row, rest) = (CaptureRecord.row(capture), CaptureRecord.rest(capture))
        if row.count + rest.count > largest {
            capture.messages = []
            capture.request.content.kept = []
            capture.sentRequest?.content.kept = []
            capture.response?.content.kept = []
            capture.receivedResponse?.content.kept = []
            rest = CaptureRecord.rest(capture)
        }
        if row.count + rest.count > largest {
            capture.request.fields = []
            capture.sentRequest = nil
            capture.response?.fields = []
            capture.receivedResponse = nil
            capture.report = nil
            capture.url = String(capture.url.prefix(1024))
            (row, rest) = (CaptureRecord.row(capture), CaptureRecord.rest(capture))
        }
        return (row, rest)
    }

    private func begin(_ writing: inout Writing) throws(SystemError) -> SegmentWriter {
        let number = writing.nextNumber
        writing.nextNumber += 1
        return try SegmentWriter(number, in: path)
    }

    private func finish(_ writing: inout Writing) throws(SystemError) {
        guard let current = writing.current else { return }
        try current.flush()
        publish(&writing)
        current.seal()
        writing.current = nil
    }

    /// Makes the written captures visible to readers.
    private func publish(_ writing: inout Writing) {
        guard let segment = writing.current?.segment else { return }
        state.withLock { state in
            state.segments.removeAll { $0.number == segment.number }
            if segment.count > 0 { state.segments.append(segment) }
        }
    }

    // MARK: Erasing

    /// Erases the oldest segments until `needed` bytes fit. Returns false if that is impossible, because the rest is pinned.
    private func makeRoom(_ needed: Int, _ writing: inout Writing) -> Bool {
        var spared: Set<Int> = []
        while true {
            let current = writing.current
            let (used, oldest) = state.withLock { state -> (Int, Segment?) in
                let others = state.segments.filter { $0.number != current?.segment.number }
                return (
                    others.reduce(0) { $0 + $1.bytes },
                    others.filter { !spared.contains($0.number) }.min { $0.highest < $1.highest }
                )
            }
            if used + (current?.bytes ?? 0) + needed <= mostInSegments { return true }
            guard let oldest else {
                // Everything is in the growing segment: complete it, so that it can be erased like the others.
                guard current != nil, (try? finish(&writing)) != nil else { return false }
                continue
            }
            if erase(oldest, &writing, where: { !self.isPinned($0) }).isEmpty { spared.insert(oldest.number) }
        }
    }

    private func isPinned(_ row: CapturedExchange) -> Bool {
        state.withLock { $0.marks[row.id]?.isPinned } ?? row.isPinned
    }

    /// Erases captures from a complete segment; the others move to a new one. Returns the numbers of the erased captures.
    private func erase(
        _ segment: Segment, _ writing: inout Writing, where isGone: (CapturedExchange) -> Bool
    ) -> [Int] {
        var gone: [Int] = []
        guard let reader = SegmentReader(segment, in: path) else {
            drop(segment, gone: [])
            return [0]
        }
        var keptFrames: [(id: Int, frame: Segment.Frame, row: [UInt8])] = []
        reader.forEach { row, frame, bytes in
            if isGone(row) { gone.append(row.id) } else { keptFrames.append((row.id, frame, Array(bytes))) }
        }
        // In the order of writing, so that lists find the newest at the end.
        keptFrames.reverse()
        guard !gone.isEmpty || keptFrames.isEmpty else { return [] }
        guard !keptFrames.isEmpty else {
            drop(segment, gone: gone)
            return gone.isEmpty ? [0] : gone
        }
        do throws(SystemError) {
            let writer = try begin(&writing)
            do throws(SystemError) {
                for (id, frame, row) in keptFrames {
                    let data = reader.data(frame)
                    try writer.append(id: id, row: row, data: data)
                }
                try writer.flush()
            } catch {
                writer.segment.remove(from: path)
                throw error
            }
            writer.seal()
            let kept = writer.segment
            drop(segment, gone: gone, for: kept)
            return gone
        } catch {
            fail("cannot be written: \(error)", &writing)
            return []
        }
    }

    private func drop(_ segment: Segment, gone: [Int], for kept: Segment? = nil) {
        let hasMarks = state.withLock { state in
            state.segments.removeAll { $0.number == segment.number }
            if let kept { state.segments.append(kept) }
            let had = gone.contains { state.marks[$0] != nil }
            if had { state.marks.remove(gone) }
            return had
        }
        segment.remove(from: path)
        index.forget(segment.number)
        if hasMarks { writeMarks() }
    }

    private func writeMarks() {
        let marks = state.withLock { $0.marks }
        try? marks.write(to: path)
    }

    public func clear(filter: CaptureFilter?) -> [Int] {
        writing.withLock { writing in
            drain(&writing)
            guard writing.isOpen else { return [] }
            try? finish(&writing)
            var gone: [Int] = []
            for segment in state.withLock({ $0.segments }) {
                let reader = SegmentReader(segment, in: path)
                gone += erase(segment, &writing) { row in
                    !self.isPinned(row) && self.matches(row, filter, reader)
                }.filter { $0 > 0 }
            }
            return gone
        }
    }

    public func mark(_ id: Int, pinned: Bool?, comment: String?) -> Bool {
        writing.withLock { writing in
            drain(&writing)
            guard writing.isOpen, place(of: id) != nil else { return false }
            guard state.withLock({ $0.marks.set(id, pinned: pinned, comment: comment) }) else { return false }
            writeMarks()
            return true
        }
    }

    /// Waits until all captures are in the files.
    public func flush() { writing.withLock { drain(&$0) } }

    public func close() {
        writing.withLock { writing in
            guard !state.withLock({ $0.isClosed }) else { return }
            if writing.isOpen || state.withLock({ $0.isForeign }) { drain(&writing) }
            try? finish(&writing)
            let lost = state.withLock { state in
                state.isClosed = true
                return state.isForeign ? state.pending.count : 0
            }
            if lost > 0 {
                WareLog.shared.log(
                    .warning,
                    "captures \(path): \(lost) captures were not written, because another process has the folder")
            }
            if writing.lock >= 0 { Glibc.close(writing.lock) }
            writing.lock = -1
            writing.isOpen = false
        }
    }

    // MARK: Reading

    private func place(of id: Int) -> (SegmentReader, Int)? {
        let segments = state.withLock { state in
            state.segments.filter { $0.lowest <= id && id <= $0.highest }.sorted { $0.number > $1.number }
        }
        for segment in segments {
            guard let reader = SegmentReader(segment, in: path, readsRows: false) else { continue }
            if let place = index.place(of: id, in: reader) { return (reader, place) }
        }
        return nil
    }

    public func find(_ id: Int) -> CapturedExchange? {
        guard let (reader, place) = place(of: id) else { return nil }
        guard var capture = reader.whole(at: place) else { return nil }
        apply(state.withLock { $0.marks[id] }, to: &capture)
        return capture
    }

    private func apply(_ mark: CaptureMarks.Mark?, to capture: inout CapturedExchange) {
        if let isPinned = mark?.isPinned { capture.isPinned = isPinned }
        if let comment = mark?.comment { capture.comment = comment }
    }

    /// Whether a row of a segment matches. If the row does not decide, the rest is read.
    private func matches(_ row: CapturedExchange, _ filter: CaptureFilter?, _ reader: SegmentReader?) -> Bool {
        guard let filter else { return true }
        switch filter.outcome(ofRow: row) {
        case .matches: return true
        case .differs, .limitReached: return false
        case .undecided:
            guard let reader, let place = index.place(of: row.id, in: reader), var whole = reader.whole(at: place)
            else {
                return false
            }
            whole.isPinned = row.isPinned
            whole.comment = row.comment
            return filter.matches(whole)
        }
    }

    public func list(
        before id: Int, limit: Int, filter: CaptureFilter?, until deadline: ContinuousClock.Instant?,
        except: (Int) -> Bool
    ) -> CapturePage {
        let (segments, marks) = segments(before: id)
        let filter = filter.map(RowFilter.init)
        var search = CaptureSearch(segments, in: path, before: id, filter)
        var found: [CapturedExchange] = []
        while let newest = search.newest {
            if let deadline, newest + 1 < id, .now >= deadline { return CapturePage(found, next: newest + 1) }
            guard let (reader, place) = search.take() else { continue }
            // If a process ended while captures were moved, they may be in two segments.
            guard found.last?.id != newest, let row = row(at: place, reader, marks, filter), !except(newest)
            else { continue }
            if found.count == limit { return CapturePage(found, next: found.last?.id ?? id) }
            found.append(row)
        }
        return CapturePage(found, next: nil)
    }

    public func ids(before id: Int, filter: CaptureFilter?) -> [Int] {
        let filter = filter.map(RowFilter.init)
        var ids: Set<Int> = []
        let (segments, marks) = segments(before: id)
        for segment in segments {
            guard let reader = SegmentReader(segment, in: path) else { continue }
            for (number, place) in reader.places(filter, wanting: { $0 < id && !ids.contains($0) }).reversed()
            where row(at: place, reader, marks, filter) != nil {
                ids.insert(number)
            }
        }
        return Array(ids)
    }

    /// The segments with captures before this number, newest first.
    private func segments(before id: Int) -> ([Segment], CaptureMarks) {
        state.withLock { state in
            (state.segments.filter { $0.lowest < id }.sorted { $0.highest > $1.highest }, state.marks)
        }
    }

    /// The row at a place with its marks, if it matches; `nil` otherwise. If the row does not decide, the rest of the
    /// capture is read.
    private func row(
        at place: Int, _ reader: SegmentReader, _ marks: CaptureMarks, _ filter: RowFilter?
    ) -> CapturedExchange? {
        guard let (read, frame, isMatch) = reader.row(at: place, filter) else { return nil }
        var row = read
        if !marks.isEmpty { apply(marks[row.id], to: &row) }
        if isMatch == true { return row }
        switch filter?.filter.outcome(ofRow: row) {
        case nil, .matches: return row
        case .differs, .limitReached: return nil
        case .undecided:
            var whole = row
            return reader.fill(&whole, frame) && filter?.filter.matches(whole) ?? true ? row : nil
        }
    }
}
