/// The normal form of a path for matching, conditions and keys. RFC 3986 §6.2.2.
///
/// Percent-encodings are in upper case, unreserved characters decoded, dot segments removed; `%2F`, `%5C` and `//` stay.
enum NormalPath {
    /// The result of normalising.
    enum Outcome: Equatable {
        /// The path is already in its normal form.
        case same
        /// The path has another form, or hides dot segments; the normal form was appended.
        case changed(dotSegments: Bool, encodedDotSegments: Bool)
        /// The path leads above the root, contains `%00`, or has a percent sign without two digits. Never for a path that is passed on.
        case refused(String)
    }

    /// Whether the path may differ from its normal form: it contains a percent sign, or a dot after a slash or a backslash.
    @inline(__always)
    static func needsWork(_ path: UnsafeBufferPointer<UInt8>) -> Bool {
        let bytes = path.span.bytes
        var index = 0
        while index &+ 8 <= bytes.byteCount {
            let word = bytes.word(at: index)
            if Swar.equal(word, Swar.all(0x25)) | Swar.equal(word, Swar.all(0x2e)) != 0 { return slowNeedsWork(path) }
            index &+= 8
        }
        while index < bytes.byteCount {
            if bytes.byte(at: index) == 0x25 || bytes.byte(at: index) == 0x2e { return slowNeedsWork(path) }
            index &+= 1
        }
        return false
    }

    private static func slowNeedsWork(_ path: UnsafeBufferPointer<UInt8>) -> Bool {
        var previous: UInt8 = 0
        for byte in path {
            if byte == 0x25 || byte == 0x2e && (previous == 0x2f || previous == 0x5c) { return true }
            previous = byte
        }
        return false
    }

    /// Normalises a path that starts with a slash, appending the result to `output` if it differs.
    ///
    /// A proxy passes any path on as received. With `isPassed`, a path that would be refused has a normal form, too, which no second
    /// reading changes: the root has no parent (RFC 3986 §5.2.4), `%00` stays, and a percent sign without two digits becomes `%25`.
    static func normalise(
        _ path: UnsafeBufferPointer<UInt8>, into output: inout [UInt8], isPassed: Bool = false
    ) -> Outcome {
        guard needsWork(path) else { return .same }
        let start = output.count
        var isChanged = false
        var dotSegments = false
        var encodedDotSegments = false
        var segmentStart = output.count  // the place of the current segment's slash
        var segmentHasEncodedDot = false
        var index = 0

        // The start of the part after the segment's last `%2F`, `%5C` or backslash: many servers end a segment there.
        var partStart = output.count + 1
        func isDots(from start: Int) -> Bool {
            let count = output.count - start
            return (count == 1 || count == 2) && output[start] == 0x2e && output[output.count - 1] == 0x2e
        }

        // Ends the segment written since `segmentStart`; returns false if it leads above the root.
        func endSegment(isLast: Bool) -> Bool {
            guard isDots(from: segmentStart + 1) else {
                if partStart > segmentStart + 1, isDots(from: partStart) { encodedDotSegments = true }
                return true
            }
            let isDoubleDot = output.count == segmentStart + 3
            dotSegments = true
            encodedDotSegments = encodedDotSegments || segmentHasEncodedDot
            output.removeSubrange(segmentStart...)
            if isDoubleDot {
                guard output.count > start || isPassed else { return false }
                let parent = output[start...].lastIndex(of: 0x2f) ?? start
                output.removeSubrange(parent...)
            }
            if isLast { output.append(0x2f) }
            return true
        }

        while index < path.count {
            let byte = path[index]
            if byte == 0x2f {
                if index > 0 {
                    guard endSegment(isLast: false) else { return refuse("the path leads above the root") }
                }
                segmentStart = output.count
                partStart = output.count + 1
                segmentHasEncodedDot = false
                output.append(byte)
                index += 1
            } else if byte == 0x25 {
                guard index + 2 < path.count, let high = Hex.value(path[index + 1]),
                    let low = Hex.value(path[index + 2])
                else {
                    guard isPassed else {
                        return refuse("a percent sign in the path is not followed by two hexadecimal digits")
                    }
                    output.append(contentsOf: "%25".utf8)
                    isChanged = true
                    index += 1
                    continue
                }
                let decoded = high << 4 | low
                guard decoded != 0 || isPassed else { return refuse("the path holds %00") }
                if ByteClass.isUnreserved(decoded) {
                    output.append(decoded)
                    isChanged = true
                    if decoded == 0x2e { segmentHasEncodedDot = true }
                } else {
                    let isSeparator = decoded == 0x2f || decoded == 0x5c
                    if isSeparator, isDots(from: partStart) { encodedDotSegments = true }
                    isChanged = isChanged || path[index + 1] >= 0x61 || path[index + 2] >= 0x61
                    output.append(0x25)
                    output.append(upper(path[index + 1]))
                    output.append(upper(path[index + 2]))
                    if isSeparator { partStart = output.count }
                }
                index += 3
            } else if byte == 0x5c {
                if isDots(from: partStart) { encodedDotSegments = true }
                output.append(byte)
                partStart = output.count
                index += 1
            } else {
                output.append(byte)
                index += 1
            }
        }
        guard endSegment(isLast: true) else { return refuse("the path leads above the root") }
        if !isChanged && !dotSegments && !encodedDotSegments {
            output.removeSubrange(start...)
            return .same
        }
        return .changed(dotSegments: dotSegments, encodedDotSegments: encodedDotSegments)

        func refuse(_ reason: String) -> Outcome {
            output.removeSubrange(start...)
            return .refused(reason)
        }
    }

    // MARK: Ambiguous paths

    /// The feature of a path that servers read differently, in words; `nil` if all of them read the path alike.
    ///
    /// Some servers merge slashes, decode `%2F` and `%5C`, treat a backslash as a slash, cut a segment off at `;`, decode
    /// twice, or end a path at NUL.
    static func ambiguity(of path: UnsafeBufferPointer<UInt8>) -> StaticString? {
        var previous: UInt8 = 0
        for index in path.indices {
            let byte = path[index]
            switch byte {
            case 0x2f where previous == 0x2f: return "two slashes in a row"
            case 0x5c: return "a backslash"
            case 0x3b: return "a semicolon"
            case 0x25:
                guard let decoded = decoded(path, at: index) else { return "a percent sign without two digits" }
                switch decoded {
                case 0: return "an encoded NUL"
                case 0x2f: return "an encoded slash"
                case 0x5c: return "an encoded backslash"
                case 0x3b: return "an encoded semicolon"
                case 0x25 where isEncoding(path, at: index + 3): return "an encoding that is encoded again"
                default: break
                }
            default: break
            }
            previous = byte
        }
        return nil
    }

    /// The byte that the percent-encoding at this place stands for; `nil` if it is invalid.
    private static func decoded(_ path: UnsafeBufferPointer<UInt8>, at index: Int) -> UInt8? {
        guard index + 2 < path.count, let high = Hex.value(path[index + 1]),
            let low = Hex.value(path[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// Whether there are two hexadecimal digits at this place.
    private static func isEncoding(_ path: UnsafeBufferPointer<UInt8>, at index: Int) -> Bool {
        index + 1 < path.count && Hex.value(path[index]) != nil && Hex.value(path[index + 1]) != nil
    }

    private static func upper(_ digit: UInt8) -> UInt8 { digit >= 0x61 ? digit & 0xdf : digit }
}
