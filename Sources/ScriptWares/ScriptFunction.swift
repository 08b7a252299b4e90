import HttpWare
import Scripting

/// The functions that scripts find beside Lua's own. A function's case is its name in scripts.
enum ScriptFunction: String, CaseIterable {
    case jsonDecode = "json.decode"
    case jsonEncode = "json.encode"
    case base64Decode = "base64.decode"
    case base64Encode = "base64.encode"
    case base64EncodeUrl = "base64.encodeUrl"
    case hexDecode = "hex.decode"
    case hexEncode = "hex.encode"
    case urlDecode = "url.decode"
    case urlEncode = "url.encode"
    case hashSha1 = "hash.sha1"
    case hashSha256 = "hash.sha256"
    case hashSha384 = "hash.sha384"
    case hashSha512 = "hash.sha512"
    case hmacSha256 = "hmac.sha256"
    case hmacSha384 = "hmac.sha384"
    case hmacSha512 = "hmac.sha512"
    case equal
    case timeNow = "time.now"
    case timeHttp = "time.http"
    case randomHex = "random.hex"
    case randomUuid = "random.uuid"
    case reMatch = "re.match"
    case reReplace = "re.replace"
    case jwtPeek = "jwt.peek"
    case httpFetch = "http.fetch"
    case sleep
    case storeGet = "store.get"
    case storeSet = "store.set"
    case storeAdd = "store.add"
    case storeRemove = "store.remove"

    static let all = Array(allCases)

    /// The longest JSON text.
    static let longestJson = 1 << 20

    /// The library's name and the function's own.
    var names: (library: String, name: String) {
        guard let dot = rawValue.firstIndex(of: ".") else { return ("", rawValue) }
        return (String(rawValue[..<dot]), String(rawValue[rawValue.index(after: dot)...]))
    }
}

/// A function was used wrongly.
struct ScriptMisuse: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// The functions that need neither the exchange nor a wait.
struct ScriptFunctions {
    /// Expressions that the scripts of a state have used.
    private var patterns: [String: Pattern] = [:]

    private static let mostPatterns = 64

    /// Calls a function. The wall clock's time is `now`. Returns the results.
    mutating func call(_ function: ScriptFunction, _ use: ScriptUse, now: WallTime) throws -> [ScriptValue] {
        switch function {
        case .jsonDecode:
            try ScriptFunctions.decodeJson(text(use, 0), use)
            return []
        case .jsonEncode:
            guard let value = use.value(0) else { throw ScriptMisuse("the value is nested too deeply or too large") }
            return [.string(try Json(script: value).bytes)]
        case .base64Decode:
            let text = try text(use, 0)
            guard let bytes = Base64.decode(text) ?? Base64.decodeUrl(text) else { return [.missing] }
            return [.string(bytes)]
        case .base64Encode: return [.text(Base64.encode(try text(use, 0)))]
        case .base64EncodeUrl: return [.text(Base64.encodeUrl(try text(use, 0)))]
        case .hexDecode: return [ScriptFunctions.decodeHex(try text(use, 0)).map { .string($0) } ?? .missing]
        case .hexEncode: return [.string(ScriptFunctions.hex(try text(use, 0)))]
        case .urlDecode:
            return [.string(PercentText.decoded(try text(use, 0), plusIsSpace: use.value(1) == .boolean(true)))]
        case .urlEncode: return [.string(PercentText.encoded(try text(use, 0)))]
        case .hashSha1: return [.text(Sha1Digest(of: try text(use, 0)).hex)]
        case .hashSha256, .hashSha384, .hashSha512:
            return [.string(ScriptFunctions.hex(ScriptHash(function).digest(try text(use, 0))))]
        case .hmacSha256, .hmacSha384, .hmacSha512:
            let code = ScriptHash(function).code(key: try text(use, 0), try text(use, 1))
            return [.string(ScriptFunctions.hex(code))]
        case .equal: return [.boolean(ConstantTime.equal(try text(use, 0), try text(use, 1)))]
        case .timeNow: return [.number(Double(now.seconds) + Double(now.nanoseconds) / 1_000_000_000)]
        case .timeHttp:
            let seconds = use.integer(0).map(Int64.init) ?? now.seconds
            guard (0..<253_402_300_800).contains(seconds) else {
                throw ScriptMisuse("the time is not in the years 1970 to 9999")
            }
            return [.text(HttpDate.text(WallTime(seconds: seconds)))]
        case .randomHex:
            let count = use.integer(0) ?? 16
            guard (1...1024).contains(count) else { throw ScriptMisuse("the number of bytes must be 1 to 1024") }
            var random = ReplaceableRandom()
            return [.string(ScriptFunctions.hex((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }))]
        case .randomUuid: return [.text(ScriptFunctions.uuid())]
        case .reMatch: return try match(use)
        case .reReplace: return try replace(use)
        case .jwtPeek: return ScriptFunctions.peek(try text(use, 0))
        case .httpFetch, .sleep, .storeGet, .storeSet, .storeAdd, .storeRemove:
            throw ScriptMisuse("this function waits")
        }
    }

    /// A text argument.
    private func text(_ use: ScriptUse, _ place: Int) throws(ScriptMisuse) -> [UInt8] {
        guard let bytes = use.bytes(place) else { throw ScriptMisuse("argument \(place + 1) must be a string") }
        return bytes
    }

    // MARK: JSON and tokens

    /// Appends the value of a JSON text part by part, because a tree of it takes longer than a call may run.
    private static func decodeJson(_ text: [UInt8], _ use: ScriptUse) throws {
        guard text.count <= ScriptFunction.longestJson else {
            throw ScriptMisuse("the JSON text has more than \(ScriptFunction.longestJson) bytes")
        }
        let range: Range<Int>
        do throws(JsonFault) {
            // No part of an invalid text is appended.
            range = try JsonScanner.check(text)
        } catch {
            use.append(.missing)
            use.append(text: "\(error)")
            return
        }
        var scanner = JsonScanner(text, checked: range)
        var parts = 0
        try append(&scanner, to: use, &parts)
    }

    private static func append(_ scanner: inout JsonScanner, to use: ScriptUse, _ parts: inout Int) throws {
        parts += 1
        if parts % 256 == 0, use.isOver {
            throw ScriptMisuse("the JSON text takes longer to read than the call may run")
        }
        if try scanner.enterObject() {
            use.beginTable()
            while let name = try scanner.nextMember() {
                use.append(text: name)
                try append(&scanner, to: use, &parts)
            }
            use.endParts()
        } else if try scanner.enterList() {
            use.beginList()
            while try scanner.hasNextElement() { try append(&scanner, to: use, &parts) }
            use.endParts()
        } else {
            use.append(ScriptValue(try scanner.value()))
        }
    }

    /// The header and the claims of a token, unverified.
    private static func peek(_ token: [UInt8]) -> [ScriptValue] {
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, token.count <= 16 << 10, let header = part(parts[0]), let claims = part(parts[1]) else {
            return [.missing]
        }
        return [.table([.init(key: .text("header"), value: header), .init(key: .text("claims"), value: claims)])]
    }

    private static func part(_ text: ArraySlice<UInt8>) -> ScriptValue? {
        Base64.decodeUrl(text).flatMap { try? JsonScanner.read($0) }.map { ScriptValue($0) }
    }

    // MARK: Bytes

    private static func hex(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(Hex.lower(byte >> 4))
            text.append(Hex.lower(byte & 15))
        }
        return text
    }

    private static func decodeHex(_ text: [UInt8]) -> [UInt8]? {
        guard text.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        for place in stride(from: 0, to: text.count, by: 2) {
            guard let byte = Hex.byte(text[...], at: place) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    /// A random UUID. RFC 9562 §5.4.
    private static func uuid() -> String {
        var random = ReplaceableRandom()
        let high = random.next() & 0xffff_ffff_ffff_0fff | 0x4000
        let low = random.next() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000
        var text = Hex.text(high) + Hex.text(low)
        for offset in [20, 16, 12, 8] { text.insert("-", at: text.index(text.startIndex, offsetBy: offset)) }
        return text
    }

    // MARK: Regular expressions

    private mutating func pattern(_ use: ScriptUse) throws -> Pattern {
        let source = String(decoding: try text(use, 1), as: UTF8.self)
        if let pattern = patterns[source] { return pattern }
        let pattern: Pattern
        do {
            pattern = try Pattern(source, [], limits: ScriptFunctions.limits)
        } catch {
            throw ScriptMisuse("the expression is invalid: \(error.message)")
        }
        if patterns.count >= ScriptFunctions.mostPatterns { patterns.removeAll() }
        patterns[source] = pattern
        return pattern
    }

    private static let limits = Pattern.Limits(subject: 1 << 20, time: .milliseconds(5), step: 32)

    /// The captures of the first match, or the whole match if the pattern has no captures.
    private mutating func match(_ use: ScriptUse) throws -> [ScriptValue] {
        let subject = try text(use, 0)
        let pattern = try pattern(use)
        do {
            guard let match = try subject.withUnsafeBytes({ try pattern.firstMatch(in: $0) }) else { return [.missing] }
            let ranges = match.ranges.count > 1 ? Array(match.ranges.dropFirst()) : match.ranges
            return ranges.map { range in range.map { .string(Array(subject[$0])) } ?? .boolean(false) }
        } catch is Pattern.LimitReached {
            throw ScriptMisuse("the expression exceeds its limits")
        }
    }

    private mutating func replace(_ use: ScriptUse) throws -> [ScriptValue] {
        let subject = try text(use, 0)
        let pattern = try pattern(use)
        let replacement = try text(use, 2)
        do {
            let replaced = try subject.withUnsafeBytes {
                try pattern.replacingAll(in: $0, with: replacement, upTo: 1 << 20)
            }
            return [.string(replaced?.bytes ?? subject), .integer(Int64(replaced?.count ?? 0))]
        } catch is Pattern.LimitReached {
            throw ScriptMisuse("the expression exceeds its limits")
        }
    }
}

/// A hash function of scripts.
private struct ScriptHash {
    private let bits: Int

    init(_ function: ScriptFunction) {
        switch function {
        case .hashSha384, .hmacSha384: bits = 384
        case .hashSha512, .hmacSha512: bits = 512
        default: bits = 256
        }
    }

    func digest(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { bytes in
            switch bits {
            case 384: Digest256.sha384(of: bytes)
            case 512: Digest256.sha512(of: bytes)
            default: Digest256(of: bytes).bytes
            }
        }
    }

    /// The authentication code. RFC 2104 §2.
    func code(key: [UInt8], _ text: [UInt8]) -> [UInt8] {
        let block = bits == 256 ? 64 : 128
        var key = key.count > block ? digest(key) : key
        key += [UInt8](repeating: 0, count: block - key.count)
        return digest(key.map { $0 ^ 0x5c } + digest(key.map { $0 ^ 0x36 } + text))
    }
}

extension ScriptValue {
    /// A JSON value, where null has a value of its own.
    init(_ json: JsonValue) {
        switch json {
        case .null: self = .null
        case .boolean(let value): self = .boolean(value)
        case .number(let text): self = Int64(text).map { .integer($0) } ?? .number(Double(text) ?? 0)
        case .string(let text): self = .text(text)
        case .array(let elements): self = .list(elements.map { ScriptValue($0) })
        case .object(let members):
            self = .table(members.map { Member(key: .text($0.name), value: ScriptValue($0.value)) })
        }
    }
}

extension Json {
    /// A value of a script as JSON, with the members of objects in the order of their names.
    init(script value: ScriptValue) throws(ScriptMisuse) {
        switch value {
        case .missing, .null: self = .null
        case .boolean(let value): self = .bool(value)
        case .integer(let value): self = .number(Int(value))
        case .number(let value):
            guard value.isFinite else { throw ScriptMisuse("JSON has no form for \(value)") }
            self = .digits(value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value))
        case .string(let bytes): self = .text(String(decoding: bytes, as: UTF8.self))
        case .list(let values):
            var elements: [Json] = []
            for value in values { elements.append(try Json(script: value)) }
            self = .list(elements)
        case .table(let members):
            var object: [(String, Json)] = []
            for member in members {
                guard let name = member.key.bytes else {
                    throw ScriptMisuse("a key is neither a string nor an integer")
                }
                object.append((String(decoding: name, as: UTF8.self), try Json(script: member.value)))
            }
            self = .object(object.sorted { $0.0 < $1.0 })
        case .other: throw ScriptMisuse("JSON has no form for a function or an object")
        }
    }
}
