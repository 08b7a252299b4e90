extension HttpRequest {
    /// Passes the only value of `Proxy-Authorization`, as bytes that are valid during the call only.
    public func withOnlyProxyAuthorization<Result>(
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        guard var value = proxyAuthorization else { return .absent }
        if hasSeveralProxyAuthorizations { return .several }
        return try value.withUTF8 { try .one(body(UnsafeRawBufferPointer($0))) }
    }

    /// Passes the only value of a query parameter, decoded. The name is compared decoded, too.
    public func withOnlyParameter<Result>(
        _ name: String, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        guard target.hasQuery else { return .absent }
        let parameters = QueryParameters(target.bytes, target.query.range)
        var place = parameters.start
        var found: Range<Int>?
        while let parameter = parameters.next(from: &place) {
            guard parameters.isText(parameter.name, name) else { continue }
            if found != nil { return .several }
            found = parameter.value
        }
        guard let found else { return .absent }
        return try parameters.decoded(found).withUnsafeBytes { try .one(body($0)) }
    }

    /// Removes the query parameters of that name, in any encoding, and leaves the bytes of the others unchanged. An empty
    /// query is then removed, too. Returns whether there were any.
    @discardableResult
    public mutating func removeParameter(_ name: String) -> Bool {
        guard target.hasQuery else { return false }
        let parameters = QueryParameters(target.bytes, target.query.range)
        var rest: [UInt8] = []
        var kept = target.query.range.lowerBound
        var place = parameters.start
        var isFound = false
        while let parameter = parameters.next(from: &place) {
            guard parameters.isText(parameter.name, name) else { continue }
            isFound = true
            // The & before the parameter is removed too, or, for the first parameter, the & after it.
            rest += target.bytes[kept..<parameter.name.lowerBound]
            kept = min(parameter.value.upperBound + 1, target.query.range.upperBound)
        }
        guard isFound else { return false }
        rest += target.bytes[kept..<target.query.range.upperBound]
        if kept == target.query.range.upperBound, rest.last == 0x26 { rest.removeLast() }
        target.keepReceivedNames()
        target.hasQuery = !rest.isEmpty
        if !rest.isEmpty { target.query = target.add(rest) }
        return true
    }
}
