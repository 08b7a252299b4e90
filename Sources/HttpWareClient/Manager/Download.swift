import Glibc

/// A downloaded file.
public struct Download: Sendable {
    /// The last response's head.
    public let response: HttpResponse
    /// The path of the file.
    public let path: String
    /// The size of the file in bytes.
    public let bytes: Int
    /// The number of bytes that an earlier attempt had downloaded.
    public let resumed: Int
}

extension HttpManager {
    /// Downloads the route's response into a file. The file is first written as `path.part` and moved to its path when
    /// it is complete, so a reader sees either the old file or the new one. An interrupted download is resumed at once,
    /// with up to `attempts` attempts in all, and again by the next call. It uses `Range` and `If-Range` (RFC 9110
    /// §14.2, §13.1.5) if the server named a strong validator. If the file has changed in between, the server sends the
    /// whole. Throws an `HttpError`, or `CancellationError` if the task is cancelled; then the part stays for the next
    /// call.
    @discardableResult
    public func download<R: Route>(
        _ route: R, _ options: CallOption..., to path: String, attempts: Int = 3,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> Download {
        try await download(try request(route, options), to: path, attempts: attempts, progress: progress)
    }

    /// Downloads the request's response into a file.
    @concurrent
    @discardableResult
    public func download<Response>(
        _ request: Request<Response>, to path: String, attempts: Int = 3,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> Download {
        let part = PartialFile(path: path)
        var attempt = 1
        while true {
            var request = request
            // Without a coding, so that a resumed download can count the bytes of the server's file.
            request.headers.append("Accept-Encoding", "identity")
            let offer = part.offer()
            if let offer {
                request.headers.append("Range", "bytes=\(offer.offset)-")
                request.headers.append("If-Range", offer.validator)
            }
            do {
                let response = try await stream(request)
                return try await part.takeContent(of: response, after: offer?.offset, progress)
            } catch let error as HttpError {
                // The existing part is not the beginning of the server's file.
                if error.fault == .status(.rangeNotSatisfiable), offer != nil {
                    part.remove()
                } else if error.stage != .receiving {
                    throw error
                }
                guard attempt < attempts else { throw error }
                attempt += 1
            }
        }
    }
}

/// An incomplete download: `path.part`, and `path.part.validator`, which identifies the version of the file. Its calls may
/// wait for a disk.
private struct PartialFile {
    let path: String
    private var part: String { path + ".part" }
    private var note: String { path + ".part.validator" }

    init(path: String) { self.path = path }

    /// The size of the part, and the validator of the representation to which it belongs; `nil` if there is nothing to
    /// resume.
    func offer() -> (offset: Int, validator: String)? {
        var status = Glibc.stat()
        guard stat(part, &status) == 0, status.st_size > 0, let validator = readNote() else { return nil }
        return (Int(status.st_size), validator)
    }

    func remove() {
        unlink(part)
        unlink(note)
    }

    /// Writes the response's content, after the existing part if the server continues it.
    func takeContent(
        of response: StreamedResponse, after offered: Int?, _ progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> Download {
        var offset = 0
        if response.status == .partialContent {
            guard let offered, let range = DownloadedRange(response.fields["Content-Range"] ?? ""),
                range.first == offered
            else {
                throw HttpError(
                    .upstream, .exchange(.responseMalformed), .checking,
                    "the response contains another range than the requested one")
            }
            offset = offered
        } else {
            remove()
        }
        let descriptor = open(part, O_WRONLY | O_CREAT | O_CLOEXEC | (offset == 0 ? O_TRUNC : O_APPEND), 0o644)
        guard descriptor >= 0 else { throw failure(FileFault(part, "cannot be written")) }
        defer { close(descriptor) }
        if offset == 0 { writeNote(response) }
        // A server may state any length. If the sum overflows, the total is unknown.
        let total = response.response.content.length.flatMap { length -> Int? in
            let (sum, isTooLarge) = length.addingReportingOverflow(offset)
            return isTooLarge ? nil : sum
        }
        var written = offset
        for try await piece in response.bytes {
            try write(piece, to: descriptor)
            written += piece.count
            progress?(TransferProgress(direction: .received, bytes: written, total: total))
        }
        guard fsync(descriptor) == 0, rename(part, path) == 0 else {
            throw failure(FileFault(path, "cannot be moved to its path"))
        }
        unlink(note)
        return Download(response: response.response, path: path, bytes: written, resumed: offset)
    }

    private func write(_ piece: [UInt8], to descriptor: Int32) throws(HttpError) {
        var start = 0
        while start < piece.count {
            let count = piece[start...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw failure(FileFault(part, "cannot be written")) }
            start += count
        }
    }

    private func failure(_ fault: FileFault) -> HttpError {
        HttpError(.client, .fileFailed, .checking, "\(fault)", underlying: fault)
    }

    // MARK: The validator

    /// Stores the validator for `If-Range`: a strong entity tag, or else a date. A weak tag is not allowed. RFC 9110
    /// §13.1.5.
    private func writeNote(_ response: StreamedResponse) {
        let tag = response.fields[.etag].flatMap { $0.hasPrefix("\"") ? $0 : nil }
        guard let validator = tag ?? response.fields[.lastModified],
            response.fields[.acceptRanges]?.lowercased() != "none"
        else { return }
        let descriptor = open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { return }
        // An incompletely written validator matches nothing, so the download is not resumed then.
        _ = Array(validator.utf8).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        close(descriptor)
    }

    private func readNote() -> String? {
        let descriptor = open(note, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0, count < buffer.count else { return nil }
        return String(decoding: buffer[..<count], as: UTF8.self)
    }
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
        guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last else { return nil }
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
