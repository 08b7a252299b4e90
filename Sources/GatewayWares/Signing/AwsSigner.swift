import HttpWare
import Synchronization

/// Signs requests with AWS Signature Version 4, for one region and service.
///
/// The key of a day is derived once and shared by all loops; a mutex guards it.
final class AwsSigner: Sendable {
    let region: String
    let service: String
    private let last = Mutex<AwsSigningKey?>(nil)

    init(region: String, service: String) {
        self.region = region
        self.service = service
    }

    /// S3 signs paths unchanged. For other services, dot segments are removed and paths are encoded once more.
    var signsPlainPaths: Bool { service.hasPrefix("s3") }

    /// The signing key of the day for the AWS keys with this number. `keys` is called only if the key must be derived.
    func key(on time: AwsTime, number: Int, _ keys: () -> AwsKeys?) -> AwsSigningKey? {
        let known = last.withLock { last in last?.day == time.day && last?.number == number ? last : nil }
        if let known { return known }
        guard let keys = keys(), let made = AwsSigningKey(keys, number, time, self) else { return nil }
        last.withLock { $0 = made }
        return made
    }

    /// The signing key that was used last, if it has that day and number. Most requests need only this one.
    func lastKey(on time: AwsTime, number: Int) -> AwsSigningKey? { key(on: time, number: number) { nil } }

    /// The signed parts of a request, except its fields.
    struct Request {
        var method: String
        /// The path as it is sent upstream, with the base path.
        var path: [UInt8]
        var query: [UInt8]?
        var host: String
        /// The content's digest in hexadecimal, or a keyword that stands for the content.
        var payload: [UInt8]
    }

    /// Returns the value of `Authorization` and the signature in it. Covers the fields that AWS requires, and those in
    /// `others`.
    func sign(
        _ request: Request, fields: HttpFields, others: [FieldName] = [], at time: AwsTime, with key: AwsSigningKey
    ) -> (authorization: [UInt8], signature: Digest256) {
        var signed = AwsSignedFields(host: request.host)
        fields.forEachLine { name, value in
            if AwsSigner.isSigned(name, others) { signed.add(name, value) }
        }
        signed.sort()
        var text: [UInt8] = []
        text.reserveCapacity(1024)
        text += request.method.utf8
        text.append(0x0a)
        AwsCanonical.append(path: request.path, isPlain: signsPlainPaths, to: &text)
        text.append(0x0a)
        if let query = request.query { AwsCanonical.append(query: query, to: &text) }
        text.append(0x0a)
        signed.appendLines(to: &text)
        text.append(0x0a)
        let names = text.count
        signed.appendNames(to: &text)
        let namesEnd = text.count
        text.append(0x0a)
        text += request.payload
        let digest = text.withUnsafeBytes { Digest256(of: $0) }
        let signature = key.sign("AWS4-HMAC-SHA256", time) { digest.appendHex(to: &$0) }
        var authorization: [UInt8] = []
        authorization.reserveCapacity(256)
        authorization += "AWS4-HMAC-SHA256 Credential=".utf8
        authorization += key.accessKeyId
        authorization.append(0x2f)
        authorization += key.scope
        authorization += ", SignedHeaders=".utf8
        authorization += text[names..<namesEnd]
        authorization += ", Signature=".utf8
        signature.appendHex(to: &authorization)
        return (authorization, signature)
    }

    private static let prefix: StaticString = "x-amz-"
    private static let named: [FieldName] = [.contentType, "Content-MD5"]

    private static func isSigned(_ name: UnsafeBufferPointer<UInt8>, _ others: [FieldName]) -> Bool {
        if name.count > 6 {
            var isAmz = true
            for place in 0..<6 where name[place] | 0x20 != prefix.utf8Start[place] | 0x20 { isAmz = false }
            if isAmz { return true }
        }
        return named.contains { isSame(name, $0) } || others.contains { isSame(name, $0) }
    }

    private static func isSame(_ name: UnsafeBufferPointer<UInt8>, _ other: FieldName) -> Bool {
        let text = other.text.utf8
        guard text.count == name.count else { return false }
        return zip(name, text).allSatisfy { $0 == $1 || ($0 | 0x20 == $1 | 0x20 && (0x61...0x7a).contains($0 | 0x20)) }
    }
}

/// A moment as AWS writes it: `20150830T123600Z`.
struct AwsTime: Sendable, Equatable {
    /// 16 bytes.
    let text: [UInt8]
    /// Days since 1970; each day has its own key.
    let day: Int64

    init(_ time: WallTime) {
        let (day, seconds) = CivilDate.split(time.seconds)
        self.day = day
        let date = CivilDate(days: day)
        text = [UInt8](unsafeUninitializedCapacity: 16) { room, count in
            func write(_ number: Int, _ place: Int, _ digits: Int) {
                var rest = number
                for digit in stride(from: place + digits - 1, through: place, by: -1) {
                    room[digit] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
                    rest /= 10
                }
            }
            write(date.year, 0, 4)
            write(date.month, 4, 2)
            write(date.day, 6, 2)
            room[8] = 0x54
            write(seconds / 3600, 9, 2)
            write(seconds / 60 % 60, 11, 2)
            write(seconds % 60, 13, 2)
            room[15] = 0x5a
            count = 16
        }
    }
}

/// The key that signs on one day.
final class AwsSigningKey: Sendable {
    let number: Int
    let day: Int64
    let accessKeyId: [UInt8]
    let sessionToken: Secret?
    /// `20150830/us-east-1/service/aws4_request`.
    let scope: [UInt8]
    private let key: HmacKey256

    init?(_ keys: AwsKeys, _ number: Int, _ time: AwsTime, _ signer: AwsSigner) {
        self.number = number
        day = time.day
        accessKeyId = Array(keys.accessKeyId.utf8)
        sessionToken = keys.sessionToken
        let date = Array(time.text[..<8])
        scope = date + "/\(signer.region)/\(signer.service)/aws4_request".utf8
        var key = Array("AWS4\(keys.secretAccessKey.revealed)".utf8).withUnsafeBytes { HmacKey256($0) }
        for part in [date, Array(signer.region.utf8), Array(signer.service.utf8), Array("aws4_request".utf8)] {
            let code = part.withUnsafeBytes { part in key?.code(of: part) }
            key = code?.withBytes { HmacKey256($0) }
        }
        guard let key else { return nil }
        self.key = key
    }

    /// The signature over a text: the title, the time, the scope, then the bytes that `rest` appends.
    func sign(_ title: StaticString, _ time: AwsTime, _ rest: (inout [UInt8]) -> Void) -> Digest256 {
        var text: [UInt8] = []
        text.reserveCapacity(384)
        text.append(contentsOf: UnsafeBufferPointer(start: title.utf8Start, count: title.utf8CodeUnitCount))
        text.append(0x0a)
        text += time.text
        text.append(0x0a)
        text += scope
        text.append(0x0a)
        rest(&text)
        return text.withUnsafeBytes { key.code(of: $0) }
    }
}

/// The signed fields: names in lower case, in order, and values without insignificant white space.
struct AwsSignedFields {
    private struct Entry {
        var name: Range<Int>
        var value: Range<Int>
    }

    private var bytes: [UInt8] = []
    private var entries: [Entry] = []

    init(host: String) {
        bytes.reserveCapacity(768)
        entries.reserveCapacity(12)
        bytes += "host".utf8
        bytes += host.utf8
        entries.append(Entry(name: 0..<4, value: 4..<bytes.count))
    }

    mutating func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        let start = bytes.count
        for byte in name { bytes.append((0x41...0x5a).contains(byte) ? byte | 0x20 : byte) }
        let middle = bytes.count
        var isPending = false
        for byte in value {
            if byte == 0x20 || byte == 0x09 {
                isPending = bytes.count > middle
            } else {
                if isPending { bytes.append(0x20) }
                isPending = false
                bytes.append(byte)
            }
        }
        entries.append(Entry(name: start..<middle, value: middle..<bytes.count))
    }

    /// Sorts by name; lines with the same name keep their order.
    mutating func sort() {
        let bytes = self.bytes
        entries.sort { left, right in
            switch AwsCanonical.order(bytes, left.name, right.name) {
            case 0: left.name.lowerBound < right.name.lowerBound
            case let order: order < 0
            }
        }
    }

    /// Appends `name:value` and a line end for each name.
    func appendLines(to text: inout [UInt8]) {
        for (place, entry) in entries.enumerated() {
            if place > 0, isSameName(entry, entries[place - 1]) {
                text[text.count - 1] = 0x2c
            } else {
                text += bytes[entry.name]
                text.append(0x3a)
            }
            text += bytes[entry.value]
            text.append(0x0a)
        }
    }

    /// Appends the names, separated by semicolons.
    func appendNames(to text: inout [UInt8]) {
        for (place, entry) in entries.enumerated() where place == 0 || !isSameName(entry, entries[place - 1]) {
            if place > 0 { text.append(0x3b) }
            text += bytes[entry.name]
        }
    }

    private func isSameName(_ left: Entry, _ right: Entry) -> Bool {
        AwsCanonical.order(bytes, left.name, right.name) == 0
    }
}

/// The canonical form of paths and queries.
enum AwsCanonical {
    /// Compares two ranges of bytes: negative, 0 or positive.
    static func order(_ bytes: [UInt8], _ left: Range<Int>, _ right: Range<Int>) -> Int {
        var place = 0
        while place < left.count, place < right.count {
            let difference = Int(bytes[left.lowerBound + place]) - Int(bytes[right.lowerBound + place])
            if difference != 0 { return difference }
            place += 1
        }
        return left.count - right.count
    }

    static func append(path: [UInt8], isPlain: Bool, to text: inout [UInt8]) {
        if isPlain {
            if path.isEmpty { text.append(0x2f) }
            PercentText.forEachDecoded(path[...]) { append($0, to: &text, keepsSlash: true) }
            return
        }
        var segments: [ArraySlice<UInt8>] = []
        for segment in path.split(separator: 0x2f) {
            if segment.elementsEqual([0x2e]) { continue }
            if segment.elementsEqual([0x2e, 0x2e]) {
                _ = segments.popLast()
            } else {
                segments.append(segment)
            }
        }
        for segment in segments {
            text.append(0x2f)
            for byte in segment { append(byte, to: &text, keepsSlash: true) }
        }
        if segments.isEmpty || path.last == 0x2f { text.append(0x2f) }
    }

    /// Appends the parameters, sorted by name, then by value. A plus sign stands for a space, as in forms.
    static func append(query: [UInt8], to text: inout [UInt8]) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(query.count + 16)
        var pairs: [(name: Range<Int>, value: Range<Int>)] = []
        for pair in query.split(separator: 0x26) {
            let equals = pair.firstIndex(of: 0x3d) ?? pair.endIndex
            let start = bytes.count
            PercentText.forEachDecoded(pair[..<equals], plusIsSpace: true) { append($0, to: &bytes, keepsSlash: false) }
            let middle = bytes.count
            PercentText.forEachDecoded(pair[equals...].dropFirst(), plusIsSpace: true) {
                append($0, to: &bytes, keepsSlash: false)
            }
            pairs.append((start..<middle, middle..<bytes.count))
        }
        if pairs.count > 1 {
            let all = bytes
            pairs.sort { left, right in
                let order = AwsCanonical.order(all, left.name, right.name)
                return order == 0 ? AwsCanonical.order(all, left.value, right.value) < 0 : order < 0
            }
        }
        for (place, pair) in pairs.enumerated() {
            if place > 0 { text.append(0x26) }
            text += bytes[pair.name]
            text.append(0x3d)
            text += bytes[pair.value]
        }
    }

    @inline(__always)
    private static func append(_ byte: UInt8, to text: inout [UInt8], keepsSlash: Bool) {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: text.append(byte)
        case 0x2f where keepsSlash: text.append(byte)
        default: PercentText.append(byte, to: &text)
        }
    }
}
