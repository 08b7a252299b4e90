import Glibc
import HttpCaching

/// The file of a disk store. It is read and written in short transactions, one at a time. Never used on a loop.
final class DiskFile: Sendable {
    /// A change to be written.
    enum Change: Sendable {
        /// Announces content before its record, so that it is known to be incomplete after a stop.
        case begin(UInt64)
        case chunk(LmdbKey, [UInt8], StoreWriting)
        case record(UInt64, [UInt8], DiskEntry, StoreWriting)
        case update(UInt64, [UInt8])
        /// Removes the response; its content stays for current readers.
        case forget(UInt64)
        case erase(UInt64)
    }

    private let environment: LmdbEnvironment

    init(path: String, bytes: Int) throws(LmdbError) { environment = try LmdbEnvironment(path: path, bytes: bytes) }

    // MARK: Reading

    /// All responses in the file by number, and the numbers of incomplete ones.
    func contents() throws(LmdbError) -> (entries: [(UInt64, DiskEntry)], incomplete: [UInt64]) {
        try environment.read { transaction throws(LmdbError) in
            var entries: [(UInt64, DiskEntry)] = []
            try transaction.walk(.index) { key, value in
                if let key = LmdbKey(key), let entry = DiskEntry(value) { entries.append((key.number, entry)) }
                return true
            }
            var incomplete: [UInt64] = []
            try transaction.walk(.open) { key, _ in
                if let key = LmdbKey(key) { incomplete.append(key.number) }
                return true
            }
            return (entries, incomplete)
        }
    }

    /// The record of a response, with its content if that is a single piece; `nil` if it is missing or damaged.
    func load(_ number: UInt64) throws(LmdbError) -> (record: StoredRecord, content: [UInt8]?)? {
        try environment.read { transaction throws(LmdbError) in
            guard let bytes = try transaction.get(.records, LmdbKey(number), { Array($0) }),
                let record = StoredRecord(bytes)
            else { return nil }
            guard record.length > 0 else { return (record, []) }
            guard record.length <= DiskChunk.size else { return (record, nil) }
            guard let content = try transaction.get(.chunks, LmdbKey(number, 0), { StoredChunk.content($0) }) ?? nil,
                content.count == record.length
            else { return nil }
            return (record, content)
        }
    }

    /// A piece of content; `nil` if it is missing or damaged.
    func chunk(_ number: UInt64, _ place: Int) throws(LmdbError) -> [UInt8]? {
        try environment.read { transaction throws(LmdbError) in
            try transaction.get(.chunks, LmdbKey(number, UInt32(clamping: place))) { StoredChunk.content($0) } ?? nil
        }
    }

    /// At most `most` records, from a number on.
    func records(from number: UInt64, most: Int) throws(LmdbError) -> [(UInt64, StoredRecord?)] {
        try environment.read { transaction throws(LmdbError) in
            var found: [(UInt64, StoredRecord?)] = []
            try transaction.walk(.records, from: LmdbKey(number)) { key, value in
                if let key = LmdbKey(key) { found.append((key.number, StoredRecord(Array(value)))) }
                return found.count < most
            }
            return found
        }
    }

    // MARK: Writing

    /// Writes all changes, or none.
    func apply(_ changes: [Change]) throws(LmdbError) {
        try environment.write { transaction throws(LmdbError) in
            for change in changes { try DiskFile.apply(change, transaction) }
        }
    }

    private static func apply(_ change: Change, _ transaction: LmdbTransaction) throws(LmdbError) {
        switch change {
        case .begin(let number): try transaction.put(.open, LmdbKey(number), [])
        case .chunk(let key, let bytes, let writing):
            if !writing.hasFailed { try transaction.put(.chunks, key, bytes) }
        case .record(let number, let bytes, let entry, let writing):
            guard !writing.hasFailed else { return }
            try transaction.put(.records, LmdbKey(number), bytes)
            try transaction.put(.index, LmdbKey(number), entry.bytes)
            try transaction.delete(.open, LmdbKey(number))
        case .update(let number, let bytes):
            guard try transaction.get(.records, LmdbKey(number), { _ in true }) == true else { return }
            try transaction.put(.records, LmdbKey(number), bytes)
        case .forget(let number):
            try transaction.delete(.records, LmdbKey(number))
            if try transaction.delete(.index, LmdbKey(number)) { try transaction.put(.open, LmdbKey(number), []) }
        case .erase(let number):
            var place: UInt32 = 0
            while try transaction.delete(.chunks, LmdbKey(number, place)) { place += 1 }
            try transaction.delete(.open, LmdbKey(number))
        }
    }

    // MARK: Verifying

    /// Checks everything in a file that is not open. The file must be as long as it states, and every record and every
    /// piece of content must be present and undamaged. Reading a damaged file may end the process, so this belongs in a
    /// separate process.
    static func isIntact(path: String) -> Bool {
        var status = stat()
        guard stat("\(path)/data.mdb", &status) == 0, status.st_size > 0 else { return false }
        // A mapping beyond the end of the file is harmless if it is never read.
        guard let environment = try? LmdbEnvironment(path: path, bytes: Int(status.st_size), isReadOnly: true),
            environment.neededBytes <= Int(status.st_size)
        else { return false }
        return (try? environment.read { transaction throws(LmdbError) in try isIntact(transaction) }) ?? false
    }

    private static func isIntact(_ transaction: LmdbTransaction) throws(LmdbError) -> Bool {
        var lengths: [UInt64: UInt64] = [:]
        var isIntact = true
        try transaction.walk(.index) { key, value in
            guard let key = LmdbKey(key), key.place == nil, let entry = DiskEntry(value) else {
                isIntact = false
                return false
            }
            lengths[key.number] = entry.length
            return true
        }
        guard isIntact else { return false }
        var records = 0
        try transaction.walk(.records) { key, value in
            guard let key = LmdbKey(key), let record = StoredRecord(Array(value)),
                lengths[key.number] == UInt64(record.length)
            else {
                isIntact = false
                return false
            }
            records += 1
            return true
        }
        guard isIntact, records == lengths.count else { return false }
        try transaction.walk(.chunks) { key, value in
            guard let key = LmdbKey(key), key.place != nil, let content = StoredChunk.content(value) else {
                isIntact = false
                return false
            }
            if let left = lengths[key.number] {
                guard left >= UInt64(content.count) else {
                    isIntact = false
                    return false
                }
                lengths[key.number] = left - UInt64(content.count)
            }
            return true
        }
        guard isIntact, lengths.values.allSatisfy({ $0 == 0 }) else { return false }
        try transaction.walk(.open) { key, _ in
            isIntact = LmdbKey(key) != nil
            return isIntact
        }
        return isIntact
    }
}
