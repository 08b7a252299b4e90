import HttpCaching
import HttpWare

/// A file and its compressed siblings, as they are offered to clients. It never changes.
final class FileEntry: Sendable {
    /// One of its representations: the file itself, or a compressed sibling.
    struct Offer: Sendable {
        let file: KnownFile
        /// The fields of a response with the content.
        let fields: HttpFields
        /// The fields of a 304.
        let notModified: HttpFields
        let validators: Validators
    }

    let whole: Offer
    /// In order of preference.
    let coded: [(coding: ContentCoding, offer: Offer)]

    /// `now` is the current time. A modification time after it is not stated.
    init(
        whole: KnownFile, coded: [(coding: ContentCoding, file: KnownFile)], type: String, cacheControl: String?,
        now: WallTime
    ) {
        func offer(_ file: KnownFile, _ coding: ContentCoding?) -> Offer {
            let tag = EntityTag(file.tag + (coding.map { "-\($0.rawValue)" } ?? ""))
            let modified = file.status.modified <= now ? file.status.modified : nil
            var fields = HttpFields()
            // All of these values are valid: the options were checked, and the others are built here.
            try? fields.append(.etag, "\"\(tag.opaque)\"")
            if let modified { try? fields.append(.lastModified, HttpDate.text(modified)) }
            if let cacheControl { try? fields.append(.cacheControl, cacheControl) }
            if !coded.isEmpty { try? fields.append(.vary, FieldName.acceptEncoding.text) }
            let notModified = fields
            try? fields.append(.acceptRanges, "bytes")
            try? fields.append(.contentType, type)
            if let coding { try? fields.append(.contentEncoding, coding.rawValue) }
            return Offer(
                file: file, fields: fields, notModified: notModified,
                validators: Validators(
                    etag: tag, lastModified: modified.map { WallTime(seconds: $0.seconds) }, date: now))
        }
        self.whole = offer(whole, nil)
        self.coded = coded.map { ($0.coding, offer($0.file, $0.coding)) }
    }

    /// The representation for the client's `Accept-Encoding`.
    func offer(_ request: borrowing HttpRequest) -> Offer {
        guard !coded.isEmpty, let best = AcceptEncoding(request).best(of: coded.map(\.coding)) else { return whole }
        return coded.first { $0.coding == best }?.offer ?? whole
    }

    /// The memory that the contents take in bytes, and the number of files kept open.
    var cost: (bytes: Int, files: Int) {
        ([whole.file] + coded.map(\.offer.file)).reduce(into: (1024, 0)) { cost, file in
            if let content = file.content { cost.0 += content.count } else { cost.1 += 1 }
        }
    }

    /// Whether the file and its siblings are small enough to be kept. Opening a larger file costs little compared with sending
    /// it. A large file that is not kept open frees its disk space as soon as it is deleted.
    var isKept: Bool {
        whole.file.size <= FileEntry.mostKept && coded.allSatisfy { $0.offer.file.size <= FileEntry.mostKept }
    }

    private static let mostKept = 1 << 20
}

/// A file as it was when it was last checked.
final class KnownFile: Sendable {
    /// The path beneath the root.
    let path: [UInt8]
    let status: FileStatus
    /// The size in bytes.
    let size: Int
    /// The content of a small file; `nil` for a larger one, which stays open instead.
    let content: [UInt8]?
    let opened: OpenedFile?

    /// Files up to this size are read into memory, because sending from memory takes one system call less.
    static let mostHeld = 32 << 10

    /// `nil` if the file would have to be read from the disk and `waits` is false. Throws if it cannot be read.
    init?(_ file: OpenedFile, _ path: [UInt8], waits: Bool) throws(Unreadable) {
        self.path = path
        status = file.status
        guard file.size <= KnownFile.mostHeld else {
            (size, content, opened) = (file.size, nil, file)
            return
        }
        guard file.size > 0 else {
            (size, content, opened) = (0, [], nil)
            return
        }
        let read = waits ? file.read(at: 0, atMost: file.size) : file.readCached(at: 0, atMost: file.size)
        switch read {
        // The file may have become shorter since it was opened; the rest is then the whole content.
        case .bytes(let bytes) where waits || bytes.count == file.size:
            (size, content, opened) = (bytes.count, bytes, nil)
        case .end where waits: (size, content, opened) = (0, [], nil)
        case .failed(let code): throw Unreadable(code: code)
        case .bytes, .end, .wouldWait:
            if waits { throw Unreadable(code: 0) }
            return nil
        }
    }

    /// The file cannot be read: `code` is the `errno`, or 0 if it ended too early.
    struct Unreadable: Error {
        let code: Int32
    }

    /// Identifies the content by its size and its modification time in nanoseconds.
    var tag: String {
        String(UInt64(bitPattern: status.modified.sinceEpoch), radix: 36) + "-" + String(size, radix: 36)
    }
}
