import FoundationEssentials
import HttpWare

/// The trust stores of Java: reads the two kinds that JDKs contain, and writes PKCS#12. RFC 7292.
///
/// The written file is neither encrypted nor authenticated: it contains only certificates, and is in a private folder. The JDK's
/// own file has had this form since version 18.
enum JavaTrustStore {
    // MARK: Writing

    /// A store that trusts all of the certificates.
    static func pkcs12(_ certificates: [[UInt8]]) -> [UInt8] {
        let bags = certificates.enumerated().flatMap { index, certificate in bag(certificate, "authority \(index)") }
        let contents = data(sequence(bags))
        // PFX: version 3, and the contents as data, without a MAC. RFC 7292 §4.
        return sequence(tag(0x02, [3]) + data(sequence(contents)))
    }

    /// A `SafeBag` with a certificate. Its attribute `trustedKeyUsage` makes Java trust it for any usage.
    private static func bag(_ certificate: [UInt8], _ name: String) -> [UInt8] {
        let value = sequence(identifier(x509Certificate) + tag(0xa0, tag(0x04, certificate)))
        let friendlyName = tag(0x1e, name.utf16.flatMap { [UInt8($0 >> 8), UInt8(truncatingIfNeeded: $0)] })
        let attributes = [
            sequence(identifier([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x14]) + tag(0x31, friendlyName)),
            // 2.16.840.1.113894.746875.1.1 with anyExtendedKeyUsage.
            sequence(
                identifier([0x60, 0x86, 0x48, 0x01, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 0x01, 0x01])
                    + tag(0x31, identifier([0x55, 0x1d, 0x25, 0x00]))),
        ]
        return sequence(
            identifier([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01, 0x03]) + tag(0xa0, value)
                + tag(0x31, attributes.flatMap(\.self)))
    }

    /// A `ContentInfo` with data. RFC 2315 §7.
    private static func data(_ content: [UInt8]) -> [UInt8] {
        sequence(
            identifier([0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01]) + tag(0xa0, tag(0x04, content)))
    }

    /// 1.2.840.113549.1.9.22.1
    private static let x509Certificate: [UInt8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x16, 0x01]

    private static func identifier(_ bytes: [UInt8]) -> [UInt8] { tag(0x06, bytes) }

    private static func sequence(_ content: [UInt8]) -> [UInt8] { tag(0x30, content) }

    /// A value in DER. X.690 §8.1, §10.1.
    private static func tag(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        guard content.count > 127 else { return [tag, UInt8(content.count)] + content }
        let digits = withUnsafeBytes(of: UInt32(content.count).bigEndian) { Array($0.drop { $0 == 0 }) }
        return [tag, 0x80 | UInt8(digits.count)] + digits + content
    }

    // MARK: Reading

    /// The trusted certificates of a store; `nil` if this program cannot read the store, for example because it is encrypted.
    static func certificates(_ store: [UInt8]) -> [[UInt8]]? {
        store.starts(with: [0xfe, 0xed, 0xfe, 0xed]) ? jks(store) : plainPkcs12(store)
    }

    /// Reads Java's own format. Its digest only protects against accidents and is not checked.
    private static func jks(_ store: [UInt8]) -> [[UInt8]]? {
        var rest = store[4...]
        func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func number(_ bytes: Int) -> Int? { take(bytes)?.reduce(0) { $0 << 8 | Int($1) } }
        func text() -> ArraySlice<UInt8>? { number(2).flatMap(take) }
        guard number(4) == 2, let count = number(4) else { return nil }
        var found: [[UInt8]] = []
        for _ in 0..<count {
            // A key has a different form from a certificate, so it ends the reading.
            guard number(4) == 2, text() != nil, take(8) != nil, let kind = text(), let length = number(4),
                let certificate = take(length)
            else { return found.isEmpty ? nil : found }
            if kind.elementsEqual("X.509".utf8) { found.append(Array(certificate)) }
        }
        return found
    }

    /// Finds the certificates of a PKCS#12 file that is not encrypted.
    private static func plainPkcs12(_ store: [UInt8]) -> [[UInt8]]? {
        let mark = identifier(x509Certificate)
        var found: [[UInt8]] = []
        var place = store.startIndex
        while let range = store[place...].firstRange(of: mark) {
            place = range.upperBound
            guard let outer = value(0xa0, store[place...]), let certificate = value(0x04, outer) else { continue }
            found.append(Array(certificate))
            place = certificate.endIndex
        }
        return found.isEmpty ? nil : found
    }

    /// The content of the DER value at the beginning of the bytes; `nil` if it has another tag.
    private static func value(_ tag: UInt8, _ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard bytes.first == tag, let first = bytes.dropFirst().first else { return nil }
        let digits = first < 0x80 ? 0 : Int(first & 0x7f)
        guard digits <= 4, bytes.count >= 2 + digits else { return nil }
        let body = bytes.dropFirst(2 + digits)
        let length = digits == 0 ? Int(first) : bytes.dropFirst(2).prefix(digits).reduce(0) { $0 << 8 | Int($1) }
        return length <= body.count ? body.prefix(length) : nil
    }

    // MARK: Location

    /// The trust store of the JDK in `JAVA_HOME`, or else of the first `java` in `PATH`.
    static func usualStore(_ environment: [String: String]) -> String? {
        let homes = [environment["JAVA_HOME"], home(ofProgramIn: environment)].compactMap(\.self)
        for home in homes where !home.isEmpty {
            for path in ["lib/security/jssecacerts", "lib/security/cacerts", "jre/lib/security/cacerts"] {
                let file = FilePath.joined(home, path)
                if FileManager.default.isReadableFile(atPath: file) { return file }
            }
        }
        return nil
    }

    private static func home(ofProgramIn environment: [String: String]) -> String? {
        guard let program = SearchPath.program("java", environment) else { return nil }
        let real = URL(filePath: program).resolvingSymlinksInPath().path
        return real.hasSuffix("/bin/java") ? String(real.dropLast("/bin/java".count)) : nil
    }
}

/// The programs of `PATH`.
enum SearchPath {
    /// The path of a program; `nil` if it is not in `PATH`.
    static func program(_ name: String, _ environment: [String: String]) -> String? {
        (environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").lazy
            .map { FilePath.joined(String($0), name) }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
