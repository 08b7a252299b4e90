import HttpCaching
import HttpWare

/// A file and its compressed siblings, as they are offered to clients. It never changes.
final class FileEntry: Sendable {
    /// One of them.
    struct Offer: Sendable {
        let file: KnownFile
        /// Of a response that carries it.
        let fields: HttpFields
        /// Of a 304.
        let notModified: HttpFields
        let validators: Validators
    }

    let whole: Offer
    /// In the order of preference.
    let coded: [(coding: ContentCoding, offer: Offer)]

    /// `now` is the present time: what was modified later is not said to have been.
    init(
        whole: KnownFile, coded: [(coding: ContentCoding, file: KnownFile)], type: String, cacheControl: String?,
        now: WallTime
    ) {
        func offer(_ file: KnownFile, _ coding: ContentCoding?) -> Offer {
            let tag = EntityTag(file.tag + (coding.map { "-\($0.rawValue)" } ?? ""))
            let modified = file.status.modified <= now ? file.status.modified : nil
            var fields = HttpFields()
            // All of them are field values: the options were checked, the others are made here.
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

    /// What a client gets that says this about codings.
    func offer(_ request: borrowing HttpRequest) -> Offer {
        guard !coded.isEmpty, let best = AcceptEncoding(request).best(of: coded.map(\.coding)) else { return whole }
        return coded.first { $0.coding == best }?.offer ?? whole
    }

    /// Bytes of memory that its contents take, and how many files it keeps open.
    var cost: (bytes: Int, files: Int) {
        ([whole.file] + coded.map(\.offer.file)).reduce(into: (1024, 0)) { cost, file in
            if let content = file.content { cost.0 += content.count } else { cost.1 += 1 }
        }
    }

    /// Whether all of it is small enough to be kept: to open a larger file costs little beside sending it, and the disk has
    /// its space back as soon as it is deleted.
    var isKept: Bool {
        whole.file.size <= FileEntry.mostKept && coded.allSatisfy { $0.offer.file.size <= FileEntry.mostKept }
    }

    private static let mostKept = 1 << 20
}

/// A file as it was when it was looked at.
final class KnownFile: Sendable {
    /// Beneath the root.
    let path: [UInt8]
    let status: FileStatus
    /// In bytes.
    let size: Int
    /// The content of a small file; of others, the open file.
    let content: [UInt8]?
    let opened: OpenedFile?

    /// Files up to this size are read into memory: to send one from there takes one call less.
    static let mostHeld = 32 << 10

    /// `nil` when the file would have to be read from the disk, and that is not to be waited for. Throws when it cannot be read.
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
        // It may have become shorter since: then what is left of it is all of it.
        case .bytes(let bytes) where waits || bytes.count == file.size:
            (size, content, opened) = (bytes.count, bytes, nil)
        case .end where waits: (size, content, opened) = (0, [], nil)
        case .failed(let code): throw Unreadable(code: code)
        case .bytes, .end, .wouldWait:
            if waits { throw Unreadable(code: 0) }
            return nil
        }
    }

    /// A file cannot be read, with this `errno`.
    struct Unreadable: Error {
        let code: Int32
    }

    /// Names the content: its size, and when it was written, to the nanosecond.
    var tag: String {
        String(UInt64(bitPattern: status.modified.sinceEpoch), radix: 36) + "-" + String(size, radix: 36)
    }
}
