import Glibc
import HttpWare

/// A response that does not continue a part, or a part of the wrong size: the download begins again.
struct PartMismatch: Error {
    let reason: String
    let response: HttpResponse
}

/// An incomplete download: `path.part`, and `path.part.validator`, which names its URL, the version of the file, and its size.
///
/// It owns the part: a lock of the system keeps other processes away until it is released. Its calls may wait for a disk. Used by one task.
final class PartialFile {
    /// The part of an interrupted download.
    struct Offer: Equatable {
        /// The size of the part in bytes.
        let offset: Int
        /// The strong validator for `If-Range`.
        let validator: String
        /// The size of the whole file, if the server stated it.
        let total: Int?
    }

    private let path: String
    private let url: String
    private let descriptor: Int32
    /// Whether the file is at its path: the name of the part may then be another download's.
    private var isMoved = false
    private var part: String { path + ".part" }
    private var note: String { path + ".part.validator" }

    /// Opens the part and locks it. Throws an `HttpError` if it cannot be written, or another process holds it.
    init(path: String, url: String) throws(HttpError) {
        self.path = path
        self.url = url
        let part = path + ".part"
        while true {
            let descriptor = open(part, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
            guard descriptor >= 0 else { throw PartialFile.failure(FileFault(part, "cannot be written")) }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                let fault =
                    errno == EWOULDBLOCK
                    ? FileFault(path: part, "is being written by another download")
                    : FileFault(part, "cannot be locked")
                close(descriptor)
                throw PartialFile.failure(fault)
            }
            // The file may have been moved to its path before the lock was free.
            var (held, named) = (Glibc.stat(), Glibc.stat())
            if fstat(descriptor, &held) == 0, stat(part, &named) == 0, held.st_ino == named.st_ino,
                held.st_dev == named.st_dev
            {
                self.descriptor = descriptor
                return
            }
            close(descriptor)
        }
    }

    /// Closes the file, which frees the lock. An empty part is removed: no later call needs it.
    deinit {
        if !isMoved, size == 0 {
            unlink(note)
            unlink(part)
        }
        close(descriptor)
    }

    private var size: Int {
        var status = Glibc.stat()
        return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    }

    /// The part of an earlier download of this URL; `nil` if there is nothing to resume.
    func offer() -> Offer? {
        let size = self.size
        guard size > 0, let noted = readNote(), noted.total.map({ size <= $0 }) ?? true else { return nil }
        return Offer(offset: size, validator: noted.validator, total: noted.total)
    }

    /// Empties the part.
    func clear() throws(HttpError) {
        unlink(note)
        guard ftruncate(descriptor, 0) == 0 else { throw PartialFile.failure(FileFault(part, "cannot be written")) }
    }

    /// Writes the response's content, after the existing part if the server continues it. Moves the file to its path when it is whole.
    /// Throws a `PartMismatch` if the part and the response do not make one file.
    func takeContent(
        of response: StreamedResponse, after offer: Offer?, _ progress: @Sendable (TransferProgress) -> Void
    ) async throws -> Download {
        var offset = 0
        var total = response.response.content.length
        if response.status == .partialContent {
            let range = DownloadedRange(response.fields["Content-Range"] ?? "")
            guard let offer else {
                throw HttpError(
                    .upstream, .exchange(.responseMalformed), .checking,
                    "the response contains another range than the requested one")
            }
            guard let range, range.first == offer.offset, continues(offer, response, range) else {
                throw PartMismatch(
                    reason: "the response contains another range than the requested one", response: response.response)
            }
            offset = offer.offset
            total = range.whole
        } else {
            try clear()
            writeNote(response, total)
        }
        guard lseek(descriptor, off_t(offset), SEEK_SET) == off_t(offset) else {
            throw PartialFile.failure(FileFault(part, "cannot be written"))
        }
        var written = offset
        for try await piece in response.bytes {
            // Content beyond the whole would make the part useless.
            if let total, piece.count > total - written {
                throw PartMismatch(
                    reason: "the response has more content than its file of \(total) bytes",
                    response: response.response)
            }
            try write(piece)
            written += piece.count
            progress(TransferProgress(direction: .received, bytes: written, total: total))
        }
        guard written == total ?? written, size == written else {
            throw PartMismatch(
                reason: "the file has \(written) bytes, not the stated \(total ?? size)", response: response.response)
        }
        unlink(note)
        guard fsync(descriptor) == 0, rename(part, path) == 0 else {
            throw PartialFile.failure(FileFault(path, "cannot be moved to its path"))
        }
        isMoved = true
        return Download(response: response.response, path: path, bytes: written, resumed: offset)
    }

    /// Whether a response with the next range belongs to the same version of the file. RFC 9110 §15.3.7.
    private func continues(_ offer: Offer, _ response: StreamedResponse, _ range: DownloadedRange) -> Bool {
        if let tag = response.fields[.etag], offer.validator.hasPrefix("\""), tag != offer.validator { return false }
        if let whole = range.whole, let total = offer.total, whole != total { return false }
        if let length = response.response.content.length, length != range.last - range.first + 1 { return false }
        return true
    }

    private func write(_ piece: [UInt8]) throws(HttpError) {
        var start = 0
        while start < piece.count {
            let count = piece[start...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw PartialFile.failure(FileFault(part, "cannot be written")) }
            start += count
        }
    }

    private static func failure(_ fault: FileFault) -> HttpError {
        HttpError(.client, .fileFailed, .checking, "\(fault)", underlying: fault)
    }

    // MARK: The validator

    /// The validator for `If-Range`: a strong entity tag, or else a date that is strong because the response is at least a minute
    /// younger. RFC 9110 §8.8.2.2, §13.1.5.
    static func validator(of fields: HttpFields) -> String? {
        let now = WallTime(seconds: Int64(time(nil)))
        if fields[.acceptRanges]?.lowercased() == "none" { return nil }
        if let tag = fields[.etag] { return tag.hasPrefix("\"") && tag.utf8.count <= mostValidator ? tag : nil }
        guard let text = fields[.lastModified], let changed = fields.time(of: .lastModified, now: now),
            let sent = fields.time(of: .date, now: now), sent.seconds - changed.seconds >= 60
        else { return nil }
        return text
    }

    private static let mostValidator = 1024

    /// Stores the URL, the validator and the size, one per line, unless the download cannot be resumed.
    private func writeNote(_ response: StreamedResponse, _ total: Int?) {
        guard let validator = PartialFile.validator(of: response.fields) else { return }
        let text = "\(url)\n\(validator)\n\(total.map(String.init) ?? "")\n"
        let descriptor = open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        // An incompletely written note matches nothing, so the download is not resumed then.
        if bytes.withUnsafeBytes({ Glibc.write(descriptor, $0.baseAddress, $0.count) }) != bytes.count { unlink(note) }
    }

    private func readNote() -> (validator: String, total: Int?)? {
        let descriptor = open(note, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: PartialFile.mostNote)
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        let lines = String(decoding: buffer[..<count], as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        // The last line ends with a line break, or the note was not written completely.
        guard lines.count == 4, lines[3].isEmpty, lines[0] == url, !lines[1].isEmpty else { return nil }
        if lines[2].isEmpty { return (String(lines[1]), nil) }
        guard let total = Int(lines[2]), total >= 0 else { return nil }
        return (String(lines[1]), total)
    }

    /// Longer notes are not read.
    private static let mostNote = 64 << 10
}

/// The position of a part within the whole, such as `bytes 5-9/10`. RFC 9110 §14.4.
struct DownloadedRange: Equatable {
    let first: Int
    let last: Int
    /// `nil` if the server does not know the length.
    let whole: Int?

    init?(_ text: String) {
        guard text.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false).map(DownloadedRange.number)
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < .max else { return nil }
        let whole = DownloadedRange.number(parts[1])
        guard whole.map({ last < $0 }) ?? (parts[1] == "*") else { return nil }
        self.first = first
        self.last = last
        self.whole = whole
    }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }
}
