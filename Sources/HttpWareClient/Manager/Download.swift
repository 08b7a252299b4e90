import HttpWare

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

    public init(response: HttpResponse, path: String, bytes: Int, resumed: Int = 0) {
        self.response = response
        self.path = path
        self.bytes = bytes
        self.resumed = resumed
    }
}

extension HttpManager {
    /// Downloads the route's response into a file. The file is first written as `path.part` and moved to its path when
    /// it is complete, so a reader sees either the old file or the new one. An interrupted download is resumed at once,
    /// with up to `attempts` attempts in all, and again by the next call for the same URL. It uses `Range` and `If-Range`
    /// (RFC 9110 §14.2, §13.1.5) if the server named a strong validator. If the file has changed in between, or a response does
    /// not fit to the part, the download begins again. The size of the file is compared with the size that the server stated.
    ///
    /// Calls for one path take turns: a call that finds a download of the same request under way gets its file. If another process
    /// is writing the part, the call fails with `.fileFailed`, and its `reason` says so.
    ///
    /// Throws an `HttpError`, or `CancellationError` if the task is cancelled; then the part stays for the next call.
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
        let message: HttpRequest
        do { message = try maker.make(request) } catch { throw error.about(request.name) }
        let url = String(decoding: message.targetUri(), as: UTF8.self)
        // Content may select the file, and is not compared: such a download is joined by no other.
        // Another manager may have other tokens, or another server behind the same name.
        let manager = "\(ObjectIdentifier(self))"
        let identity = request.content.isEmpty ? "\(manager) \(message.method) \(url)\n\(message.fields)" : nil
        let turn = try await DownloadTurns.shared.take(path, identity: identity, progress)
        guard case .begins(let turn) = turn else {
            if case .joined(let file) = turn { return file }
            throw CancellationError()
        }
        do {
            let part = try PartialFile(path: path, url: message.method == .get ? url : "\(message.method) \(url)")
            let file = try await fill(part, by: request, attempts, turn)
            DownloadTurns.shared.end(turn, with: file)
            return file
        } catch {
            DownloadTurns.shared.end(turn, with: nil)
            throw (error as? HttpError)?.about(request.name) ?? error
        }
    }

    /// Requests the rest of the file until it is complete.
    private func fill<Response>(
        _ part: PartialFile, by request: Request<Response>, _ attempts: Int, _ turn: DownloadTurns.Turn
    ) async throws -> Download {
        var attempt = 1
        var hasBegunAgain = false
        while true {
            try Task.checkCancellation()
            var request = request
            // Without a coding, so that a resumed download can count the bytes of the server's file.
            request.headers["Accept-Encoding"] = "identity"
            // Content may select the file, so that the part may be the beginning of another one.
            let offer = request.content.isEmpty ? part.offer() : nil
            if let offer {
                request.headers["Range"] = "bytes=\(offer.offset)-"
                request.headers["If-Range"] = offer.validator
            }
            do {
                let response = try await stream(request)
                return try await part.takeContent(of: response, after: offer) { turn.report($0) }
            } catch let mismatch as PartMismatch {
                // The part is not the beginning of the server's file, or has the wrong size.
                try part.clear()
                guard hasBegunAgain, attempt >= attempts else {
                    if hasBegunAgain { attempt += 1 }
                    hasBegunAgain = true
                    continue
                }
                throw HttpError(.upstream, .exchange(.responseMalformed), .checking, mismatch.reason).about(
                    request.name, nil, mismatch.response)
            } catch let error as HttpError {
                if error.fault == .status(.rangeNotSatisfiable), offer != nil {
                    try part.clear()
                } else if error.stage != .receiving || error.fault == .fileFailed {
                    throw error
                }
                guard attempt < attempts else { throw error }
                attempt += 1
            }
        }
    }
}
