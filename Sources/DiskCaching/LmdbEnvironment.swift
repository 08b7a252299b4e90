import CLmdb
import Glibc

/// An error of LMDB or of the system.
struct LmdbError: Error, CustomStringConvertible {
    let code: Int32

    /// Whether there is no room in the file or on the disk.
    var isFull: Bool { code == MDB_MAP_FULL || code == ENOSPC || code == EFBIG || code == EDQUOT }
    var description: String { String(cString: mdb_strerror(code)) }

    static func check(_ code: Int32) throws(LmdbError) {
        if code != 0 { throw LmdbError(code: code) }
    }
}

/// The tables of a disk store's file.
enum LmdbTable: Int, CaseIterable {
    /// By number: the data for finding a response and for counting it.
    case index
    /// By number: the record.
    case records
    /// By number and index: the pieces of content, each with a checksum.
    case chunks
    /// The numbers of contents without a record, which remain after a stop during a write or a removal.
    case open

    fileprivate var name: String {
        switch self {
        case .index: "index"
        case .records: "records"
        case .chunks: "chunks"
        case .open: "open"
        }
    }
}

/// An open LMDB file. Several threads can read at the same time, and one can write; LMDB itself guards that.
// @unchecked Sendable: the pointer and the numbers are written in `init` only, and LMDB's calls lock their shared state.
final class LmdbEnvironment: @unchecked Sendable {
    private let environment: OpaquePointer
    private var tables: [MDB_dbi] = []

    /// Opens or creates `data.mdb` in the folder, with at most `bytes` bytes. A read-only environment takes no lock, so the
    /// file must not be written meanwhile.
    init(path: String, bytes: Int, isReadOnly: Bool = false) throws(LmdbError) {
        var made: OpaquePointer?
        try LmdbError.check(mdb_env_create(&made))
        guard let environment = made else { throw LmdbError(code: ENOMEM) }
        var isOpen = false
        defer { if !isOpen { mdb_env_close(environment) } }
        try LmdbError.check(mdb_env_set_mapsize(environment, bytes))
        try LmdbError.check(mdb_env_set_maxdbs(environment, MDB_dbi(LmdbTable.allCases.count)))
        try LmdbError.check(mdb_env_set_maxreaders(environment, 126))
        // Each commit synchronizes the content, and the next one the head of the file. If the machine stops, only the last
        // commit can be lost, never the whole file.
        let flags = UInt32(MDB_NOTLS | MDB_NORDAHEAD) | UInt32(isReadOnly ? MDB_RDONLY | MDB_NOLOCK : MDB_NOMETASYNC)
        try LmdbError.check(mdb_env_open(environment, path, flags, 0o600))
        self.environment = environment
        var transaction: OpaquePointer?
        try LmdbError.check(mdb_txn_begin(environment, nil, isReadOnly ? UInt32(MDB_RDONLY) : 0, &transaction))
        for table in LmdbTable.allCases {
            var number: MDB_dbi = 0
            let code = mdb_dbi_open(transaction, table.name, isReadOnly ? 0 : UInt32(MDB_CREATE), &number)
            guard code == 0 else {
                mdb_txn_abort(transaction)
                throw LmdbError(code: code)
            }
            tables.append(number)
        }
        try LmdbError.check(mdb_txn_commit(transaction))
        isOpen = true
    }

    deinit {
        mdb_env_sync(environment, 1)
        mdb_env_close(environment)
    }

    /// The size that the file in the folder needs for its data, in bytes; `nil` if it is not such a file. Maps only the head,
    /// so that a file that is too short is harmless.
    static func neededBytes(of path: String) -> Int? {
        var made: OpaquePointer?
        guard mdb_env_create(&made) == 0, let environment = made else { return nil }
        defer { mdb_env_close(environment) }
        guard mdb_env_open(environment, path, UInt32(MDB_RDONLY | MDB_NOLOCK), 0o600) == 0 else { return nil }
        return neededBytes(environment)
    }

    /// The size that the file needs for its data, in bytes.
    var neededBytes: Int { LmdbEnvironment.neededBytes(environment) }

    private static func neededBytes(_ environment: OpaquePointer) -> Int {
        var information = MDB_envinfo()
        var statistics = MDB_stat()
        mdb_env_info(environment, &information)
        mdb_env_stat(environment, &statistics)
        return (information.me_last_pgno + 1) * Int(statistics.ms_psize)
    }

    /// Reads a snapshot. The transaction must be short, because pages in the snapshot cannot be reused meanwhile.
    func read<Result>(_ body: (LmdbTransaction) throws(LmdbError) -> Result) throws(LmdbError) -> Result {
        var transaction: OpaquePointer?
        try LmdbError.check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction))
        guard let transaction else { throw LmdbError(code: ENOMEM) }
        defer { mdb_txn_abort(transaction) }
        return try body(LmdbTransaction(transaction, tables))
    }

    /// Applies all changes, or none.
    func write(_ body: (LmdbTransaction) throws(LmdbError) -> Void) throws(LmdbError) {
        var transaction: OpaquePointer?
        try LmdbError.check(mdb_txn_begin(environment, nil, 0, &transaction))
        guard let transaction else { throw LmdbError(code: ENOMEM) }
        do throws(LmdbError) {
            try body(LmdbTransaction(transaction, tables))
        } catch {
            mdb_txn_abort(transaction)
            throw error
        }
        try LmdbError.check(mdb_txn_commit(transaction))
    }
}

/// A transaction in progress.
struct LmdbTransaction {
    private let transaction: OpaquePointer
    private let tables: [MDB_dbi]

    fileprivate init(_ transaction: OpaquePointer, _ tables: [MDB_dbi]) {
        self.transaction = transaction
        self.tables = tables
    }

    /// Passes the value of a key to `body`; `nil` if the key does not exist. The bytes belong to the file, and are valid only
    /// during the call.
    func get<Result>(
        _ table: LmdbTable, _ key: LmdbKey, _ body: (UnsafeRawBufferPointer) -> Result
    ) throws(LmdbError) -> Result? {
        var value = MDB_val()
        let code = key.withValue { mdb_get(transaction, tables[table.rawValue], &$0, &value) }
        if code == MDB_NOTFOUND { return nil }
        try LmdbError.check(code)
        return body(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
    }

    func put(_ table: LmdbTable, _ key: LmdbKey, _ bytes: [UInt8]) throws(LmdbError) {
        let code = key.withValue { key in
            bytes.withUnsafeBytes { bytes in
                // LMDB reads through the pointer and does not write.
                var value = MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
                return mdb_put(transaction, tables[table.rawValue], &key, &value, 0)
            }
        }
        try LmdbError.check(code)
    }

    /// Removes a key; returns whether it existed.
    @discardableResult
    func delete(_ table: LmdbTable, _ key: LmdbKey) throws(LmdbError) -> Bool {
        let code = key.withValue { mdb_del(transaction, tables[table.rawValue], &$0, nil) }
        if code == MDB_NOTFOUND { return false }
        try LmdbError.check(code)
        return true
    }

    /// Passes each key and value from `start` on to `body`, in order, while that returns true. The bytes are valid only during
    /// the call.
    func walk(
        _ table: LmdbTable, from start: LmdbKey? = nil,
        _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Bool
    ) throws(LmdbError) {
        var cursor: OpaquePointer?
        try LmdbError.check(mdb_cursor_open(transaction, tables[table.rawValue], &cursor))
        defer { mdb_cursor_close(cursor) }
        var value = MDB_val()
        var key = MDB_val()
        var code =
            start?.withValue { start in
                key = start
                return mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
            } ?? mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
        while code == 0 {
            let isWanted = body(
                UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size),
                UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
            guard isWanted else { return }
            code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
        }
        if code != MDB_NOTFOUND { throw LmdbError(code: code) }
    }
}

/// A number, optionally with an index. Big-endian, so that the order of the bytes is that of the numbers.
struct LmdbKey: Equatable {
    let number: UInt64
    let place: UInt32?

    init(_ number: UInt64, _ place: UInt32? = nil) {
        self.number = number
        self.place = place
    }

    /// Reads the output of `withValue`; `nil` for anything else.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 8 || bytes.count == 12 else { return nil }
        number = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        place = bytes.count == 12 ? UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)) : nil
    }

    fileprivate func withValue(_ body: (inout MDB_val) -> Int32) -> Int32 {
        var bytes = (number.bigEndian, (place ?? 0).bigEndian)
        return withUnsafeMutableBytes(of: &bytes) { bytes in
            var value = MDB_val(mv_size: place == nil ? 8 : 12, mv_data: bytes.baseAddress)
            return body(&value)
        }
    }
}
