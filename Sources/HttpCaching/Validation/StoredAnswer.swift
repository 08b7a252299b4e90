package import HttpWare

/// Makes responses from stored ones as a request asks for them: whole, without content, in parts, or *not modified*.
package enum StoredAnswer {
    /// The answer to a request with these fields. `age` is in nanoseconds.
    package static func make(
        _ stored: StoredResponse, for method: HttpMethod, _ request: HttpFields, age: Int64, now: WallTime
    ) -> HttpResponse {
        var fields = stored.fields
        fields.set(.age, to: Int(clamping: age / 1_000_000_000))
        var response = HttpResponse(stored.status, fields: fields)
        response.isStored = true
        if stored.status == .ok || stored.part != nil {
            if Preconditions.areConditional(request),
                Preconditions.decide(request, stored: stored.validators, received: stored.head.received) == .notModified
            {
                return notModified(response)
            }
        }
        if method == .get, request.contains(.range), stored.status == .ok || stored.part != nil {
            if let part = answerOfParts(stored, response, request, now: now) { return part }
        }
        put(stored.content, 0..<stored.content.count, into: &response)
        return response
    }

    /// The stored response unchanged, whatever the request asks for.
    package static func repeated(_ stored: StoredResponse) -> HttpResponse {
        var response = HttpResponse(stored.status, fields: stored.fields)
        response.isStored = true
        put(stored.content, 0..<stored.content.count, into: &response)
        return response
    }

    /// Whether the stored response contains what the request asks for. A stored part answers only requests for parts of
    /// it.
    package static func serves(_ stored: StoredResponse, _ method: HttpMethod, _ request: HttpFields, now: WallTime)
        -> Bool
    {
        guard let part = stored.part else { return true }
        // If the whole length is unknown, only ranges that are counted from the beginning can be answered.
        guard method == .get, request.contains(.range),
            Preconditions.allowsRange(request, stored: stored.validators, now: now),
            case .part(let wanted)? = ByteRange(request.values(of: .range), length: part.complete ?? .max)
        else { return false }
        return part.range.lowerBound <= wanted.lowerBound && wanted.upperBound <= part.range.upperBound
    }

    /// Makes a 304 with the required fields and the fields that a cache needs. RFC 9110 §15.4.5.
    package static func notModified(_ whole: HttpResponse) -> HttpResponse {
        var response = whole
        response.status = .notModified
        response.content = .none
        for name in representation { response.fields.remove(name) }
        return response
    }

    /// The fields that describe content, which a 304 does not have.
    private static let representation: [FieldName] = [
        .contentLength, .contentType, .contentEncoding, .contentRange, "Content-Language",
    ]

    /// The requested parts; `nil` if the whole is to be sent. RFC 9110 §14.2.
    private static func answerOfParts(
        _ stored: StoredResponse, _ whole: HttpResponse, _ request: HttpFields, now: WallTime
    ) -> HttpResponse? {
        let length = stored.part == nil ? stored.content.count : stored.part?.complete
        let complete = length ?? .max
        guard Preconditions.allowsRange(request, stored: stored.validators, now: now),
            let wanted = ByteRange(request.values(of: .range), length: complete)
        else { return nil }
        var response = whole
        response.fields.remove(.contentLength)
        let start = stored.part?.range.lowerBound ?? 0
        switch wanted {
        case .unsatisfiable:
            response.status = .rangeNotSatisfiable
            response.fields.remove(.contentType)
            response.fields.remove(.contentEncoding)
            try? response.fields.set(.contentRange, to: "bytes */\(complete)")
        case .part(let range):
            response.status = .partialContent
            try? response.fields.set(.contentRange, to: ContentRange(range: range, complete: length).text)
            put(stored.content, (range.lowerBound - start)..<(range.upperBound - start), into: &response)
        case .parts(let ranges):
            // A coding would apply to all parts together.
            guard stored.part == nil, let bytes = stored.content.inMemory, !response.fields.contains(.contentEncoding)
            else { return nil }
            response.status = .partialContent
            let parts = MultipartRanges(ranges, of: complete, type: response.fields[.contentType])
            try? response.fields.set(.contentType, to: parts.type)
            response.content = .bytes(parts.content(of: bytes))
        }
        return response
    }

    private static func put(_ content: StoredContent, _ part: Range<Int>, into response: inout HttpResponse) {
        guard !part.isEmpty else { return }
        switch content {
        case .bytes(let bytes):
            response.content = .bytes(part.count == bytes.count ? bytes : Array(bytes[part]))
        case .elsewhere(let reader):
            response = HttpResponse(
                response.status, fields: response.fields, source: reader.source(of: part), length: part.count)
            response.isStored = true
        }
    }
}
