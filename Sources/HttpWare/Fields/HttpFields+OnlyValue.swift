/// The result of looking for a value that must be unique, because two would be ambiguous.
public enum OnlyValue<Value> {
    case absent
    case several
    case one(Value)
}

extension OnlyValue: Sendable where Value: Sendable {}

extension HttpFields {
    /// Passes the value of the only line with that name, as bytes that are valid during the call only. A repeated
    /// credential is refused, because other programs may read the first or the last one. RFC 9110 §5.3.
    public func withOnlyValue<Result>(
        of name: FieldName, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        guard let first = firstIndex(of: name) else { return .absent }
        guard index(of: name, from: first + 1) == nil else { return .several }
        return try bytes.withUnsafeBytes { try .one(body(.init(rebasing: $0[lines[first].value]))) }
    }

    /// Passes the value of the first line with that name, as bytes that are valid during the call only; `nil` without one.
    public func withFirstValue<Result>(of name: FieldName, _ body: (UnsafeRawBufferPointer) -> Result) -> Result? {
        guard let first = firstIndex(of: name) else { return nil }
        return bytes.withUnsafeBytes { body(.init(rebasing: $0[lines[first].value])) }
    }

    /// The time in the only line with that name; `nil` if there is none, several, or an invalid one. The usual format is parsed in place.
    /// RFC 9110 §5.6.7.
    public func time(of name: FieldName, now: WallTime) -> WallTime? {
        switch withOnlyValue(of: name, HttpDate.usual) {
        case .one(let time?): time
        case .one: self[name].flatMap { HttpDate.time(anyForm: $0, now: now) }
        case .absent, .several: nil
        }
    }

    /// Passes the value of the only line with that name. If it is missing because a ware removed it as an accepted
    /// credential, passes the accepted value. The bytes are valid during the call only.
    func withOnlyOrAcceptedValue<Result>(
        of name: FieldName, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        if firstIndex(of: name) == nil, let accepted = lastAccepted(name) {
            return try bytes.withUnsafeBytes { try .one(body(.init(rebasing: $0[lines[accepted].value]))) }
        }
        return try withOnlyValue(of: name, body)
    }

    /// The same for a cookie.
    func withOnlyOrAcceptedCookie<Result>(
        _ name: String, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        let found = try withOnlyCookie(name, body)
        guard case .absent = found, present & KnownField.cookie.bit != 0 else { return found }
        var accepted: Range<Int>?
        for line in lines where line.flags & Line.accepted != 0 && line.known == .cookie {
            forEachCrumb(line.value) { crumb, value in if isCookie(crumb, name) { accepted = value } }
        }
        guard let accepted else { return found }
        return try bytes.withUnsafeBytes { try .one(body(.init(rebasing: $0[accepted]))) }
    }

    /// Passes the value of the only cookie with that name, as bytes that are valid during the call only. RFC 6265 §4.2.1.
    public func withOnlyCookie<Result>(
        _ name: String, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        var found: Range<Int>?
        var count = 0
        var next = firstIndex(of: FieldName.cookie)
        while let line = next {
            forEachCrumb(lines[line].value) { crumb, value in
                guard let value, isCookie(crumb, name) else { return }
                found = value
                count += 1
            }
            next = index(of: .cookie, from: line + 1)
        }
        guard let found else { return .absent }
        guard count == 1 else { return .several }
        return try bytes.withUnsafeBytes { try .one(body(.init(rebasing: $0[found]))) }
    }

    /// The values of all cookies with that name, in order. RFC 6265 §4.2.1.
    func cookieValues(_ name: String) -> [String] {
        var values: [String] = []
        var next = firstIndex(of: FieldName.cookie)
        while let line = next {
            forEachCrumb(lines[line].value) { crumb, value in
                guard let value, isCookie(crumb, name) else { return }
                values.append(String(decoding: bytes[value], as: UTF8.self))
            }
            next = index(of: .cookie, from: line + 1)
        }
        return values
    }

    /// Removes the cookies with that name and leaves the bytes of the others unchanged. Returns whether there were any.
    @discardableResult
    public mutating func removeCookie(_ name: String) -> Bool { removeCookie(name, isAccepted: false) }

    /// Removes the cookie like `removeCookie`, after its value was accepted as a credential: a key made of this cookie
    /// still finds it.
    public mutating func removeAcceptedCookie(_ name: String) { removeCookie(name, isAccepted: true) }

    @discardableResult
    private mutating func removeCookie(_ name: String, isAccepted: Bool) -> Bool {
        var kept: [[UInt8]] = []
        var accepted: [UInt8] = []
        var isFound = false
        var next = firstIndex(of: FieldName.cookie)
        while let line = next {
            var rest: [UInt8] = []
            forEachCrumb(lines[line].value) { crumb, value in
                if value != nil, isCookie(crumb, name) {
                    isFound = true
                    if isAccepted { accepted = Array(bytes[crumb.text]) }
                } else {
                    if !rest.isEmpty { rest += [0x3b, 0x20] }
                    rest += bytes[crumb.text]
                }
            }
            if !rest.isEmpty { kept.append(rest) }
            next = index(of: .cookie, from: line + 1)
        }
        guard isFound else { return false }
        remove(FieldName.cookie)
        for value in kept { appendLine(.cookie, value) }
        if isAccepted {
            // A separate line that is not part of the message.
            appendLine(.cookie, accepted)
            lines[lines.count - 1].flags |= Line.removed | Line.accepted
        }
        return true
    }

    /// Removes the cookies with that name, also from the fields as received. Passes the value of each, as bytes that are valid during
    /// the call only. For cookies of the gateway itself; before any ware sees the fields.
    mutating func takeCookie(_ name: String, _ body: (UnsafeRawBufferPointer) -> Void) {
        takeCookies { other, value in
            guard other.elementsEqual(name.utf8) else { return false }
            body(value)
            return true
        }
    }

    /// Removes the cookies for which the closure returns true, also from the fields as received. The closure gets the name and the value
    /// of each, as bytes that are valid during the call only. The bytes of the other cookies do not change.
    public mutating func takeCookies(
        where isTaken: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool
    ) {
        var next = firstIndex(of: FieldName.cookie)
        while let line = next {
            next = index(of: .cookie, from: line + 1)
            var taken: [Int] = []
            var hasOthers = false
            bytes.withUnsafeBytes { all in
                forEachCrumb(lines[line].value) { crumb, value in
                    let name = UnsafeRawBufferPointer(rebasing: all[crumb.name])
                    if let value, isTaken(name, .init(rebasing: all[value])) {
                        taken.append(crumb.text.lowerBound)
                    } else {
                        hasOthers = true
                    }
                }
            }
            guard !taken.isEmpty else { continue }
            guard hasOthers else {
                noteChange()
                lines[line].flags |= Line.removed | Line.hopByHop
                continue
            }
            var rest: [UInt8] = []
            forEachCrumb(lines[line].value) { crumb, _ in
                if taken.first == crumb.text.lowerBound {
                    taken.removeFirst()
                    return
                }
                if !rest.isEmpty { rest += [0x3b, 0x20] }
                rest += bytes[crumb.text]
            }
            setValue(rest, ofLine: line)
        }
    }

    /// Passes each piece of a value that is not empty, and the range of its value without quotes; `nil` without a `=`.
    private func forEachCrumb(_ value: Range<Int>, _ body: (_ crumb: CookieReader.Piece, _ value: Range<Int>?) -> Void)
    {
        bytes.withUnsafeBytes { all in
            var reader = CookieReader(all, value)
            while let crumb = reader.next() {
                if !crumb.text.isEmpty { body(crumb, crumb.value.map(reader.unquoted)) }
            }
        }
    }

    private func isCookie(_ crumb: CookieReader.Piece, _ name: String) -> Bool {
        bytes[crumb.name].elementsEqual(name.utf8)
    }
}
