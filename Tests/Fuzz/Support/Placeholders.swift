@testable import HttpWare

extension Fuzzing {
    private static let placeholder = TokenPlaceholder(bytes: Array("hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV".utf8))
    private static let token = Array("abab+/ac".utf8)

    /// Bytes of peers that the broker reads: content in codings, tokens and placeholders in it, messages of WebSockets, and heads. In pieces
    /// or whole, the result is the same; a token is never left, and a placeholder neither.
    public static func placeholders(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        var bytes = Array(UnsafeBufferPointer(start: start, count: count))
        guard let kind = bytes.popLast(), let cut = bytes.popLast() else { return }
        let piece = Int(cut) % 17 + 1
        switch kind % 5 {
        case 0: scrub(bytes, piece)
        case 1: search(bytes, piece, type: "application/json")
        case 2: search(bytes, piece, type: "application/x-www-form-urlencoded")
        case 3: frames(bytes, piece)
        default: searchChunks(bytes, piece)
        }
    }

    private static func pass(_ bytes: [UInt8], _ piece: Int, _ filter: any ContentFilter) -> [UInt8]? {
        var output: [UInt8] = []
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                try Array(rest.prefix(piece)).withUnsafeBytes { try filter.filter($0, into: &output) }
                rest = rest.dropFirst(piece)
                while filter.isPending { try filter.more(into: &output) }
            }
            try filter.finish(into: &output)
            return output
        } catch {
            return nil
        }
    }

    private static func scrub(_ bytes: [UInt8], _ piece: Int) {
        guard let search = TokenSearch(Secret(String(decoding: token, as: UTF8.self))) else { return }
        let filter = { ScrubbedContent([search], placeholder: placeholder) {} }
        guard let first = filter(), let second = filter() else { return }
        let whole = pass(bytes, .max, first)
        require(whole == pass(bytes, piece, second), "cut into pieces of \(piece)")
        guard let whole, whole.count >= token.count else { return }
        for index in 0...(whole.count - token.count) {
            require(!whole[index...].starts(with: token), "the token is left")
        }
    }

    private static func search(_ bytes: [UInt8], _ piece: Int, type: String) {
        guard var request = try? HttpRequest(.post, "http://a.test/"),
            (try? request.fields.set(.contentType, to: type)) != nil
        else { return }
        let filter = { () -> SearchedContent? in
            let swaps = TokenSwaps()
            // The point keeps what stands around a token from making another text of the form of placeholders with it.
            swaps.add(PlaceholderSwap(placeholder, by: Secret("to.ken"), in: [.json, .form]))
            return SearchedContent(request, swaps)
        }
        guard let first = filter(), let second = filter() else { return }
        let whole = pass(bytes, .max, first)
        require(whole == pass(bytes, piece, second), "cut into pieces of \(piece)")
        if let whole {
            require(whole.withUnsafeBytes { PlaceholderSearch.first(in: $0) } == nil, "a placeholder is left")
        }
        if let head = String(validating: bytes, as: UTF8.self),
            let target = try? HttpRequest(.get, "http://a.test/?\(head)")
        {
            var copy = target
            var search = RequestSearch([PlaceholderSwap(placeholder, by: Secret("t.t"), in: [.query, .headers])])
            if (try? search.replace(in: &copy)) != nil {
                require(
                    copy.target.bytes[copy.target.query.range].withUnsafeBytes { PlaceholderSearch.first(in: $0) }
                        == nil,
                    "a placeholder is left in the query")
            }
        }
    }

    private static func frames(_ bytes: [UInt8], _ piece: Int) {
        for isMasked in [false, true] {
            let filter = { WebSocketFilter(isMasked: isMasked) { SearchedContent(TokenSwaps(), words: "a message") } }
            let whole = pass(bytes, .max, filter())
            let pieces = pass(bytes, piece, filter())
            // In pieces, long frames become several: whether they pass is the same.
            require((whole == nil) == (pieces == nil), "cut into pieces of \(piece)")
        }
    }

    /// Content in `aws-chunked` passes as it came, or not at all; if it passes, the joined chunks hold no placeholder.
    private static func searchChunks(_ bytes: [UInt8], _ piece: Int) {
        guard var request = try? HttpRequest(.put, "http://a.test/"),
            (try? request.fields.set(.contentEncoding, to: "aws-chunked")) != nil
        else { return }
        let filter = { SearchedContent(request, TokenSwaps()) }
        guard let first = filter(), let second = filter() else { return }
        let whole = pass(bytes, .max, first)
        require(whole == pass(bytes, piece, second), "cut into pieces of \(piece)")
        guard let whole else { return }
        require(whole == bytes, "content was changed")
        var joined: [UInt8] = []
        guard let decoder = ContentDecoder(["aws-chunked"], readsChunks: true),
            (try? decoder.decode(bytes, into: &joined, upTo: .max)) == true
        else { return require(false, "chunks that passed cannot be read") }
        require(joined.withUnsafeBytes { PlaceholderSearch.first(in: $0) } == nil, "a placeholder is left")
        require(
            bytes.withUnsafeBytes { PlaceholderSearch.first(in: $0) } == nil, "a placeholder is left in the framing")
    }
}
