import FoundationEssentials
import Glibc
import HttpWare

/// Certificates of authorities, without duplicates, in the order in which they were added.
struct CertificateBundle {
    /// The certificates in DER.
    private(set) var certificates: [[UInt8]] = []
    private var known: Set<[UInt8]> = []

    /// The largest file that is read, in bytes.
    private static let mostBytes = 16 << 20

    /// Adds a certificate in DER.
    mutating func add(_ certificate: [UInt8]) {
        if known.insert(certificate).inserted { certificates.append(certificate) }
    }

    /// Adds the certificates of a text in PEM and ignores the text between them. Returns whether there was one. RFC 7468 §3.
    @discardableResult
    mutating func add(pem text: String) -> Bool {
        var hasAny = false
        var body: Data?
        // The text is searched as bytes: finding lines in a long String is slow.
        for line in text.utf8.split(whereSeparator: TextBytes.isLineEnd) {
            if line.starts(with: "-----BEGIN ".utf8) {
                body = line.suffix(16).elementsEqual("CERTIFICATE-----".utf8) ? Data() : nil
            } else if line.starts(with: "-----END ".utf8), let encoded = body {
                body = nil
                guard let bytes = Data(base64Encoded: encoded, options: .ignoreUnknownCharacters), bytes.first == 0x30
                else { continue }
                add(Array(bytes))
                hasAny = true
            } else {
                body?.append(contentsOf: line)
            }
        }
        return hasAny
    }

    /// Adds the certificates of a file in PEM, or of all such files in a folder. Returns whether there was one.
    @discardableResult
    mutating func add(path: String) -> Bool {
        var status = Glibc.stat()
        guard stat(path, &status) == 0 else { return false }
        guard status.st_mode & S_IFMT == S_IFDIR else {
            return CertificateBundle.text(path).map { add(pem: $0) } ?? false
        }
        var hasAny = false
        for name in ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() {
            guard let text = CertificateBundle.text(FilePath.joined(path, name)) else { continue }
            if add(pem: text) { hasAny = true }
        }
        return hasAny
    }

    /// The content of a regular file; `nil` if it cannot be read.
    static func text(_ path: String) -> String? { bytes(path).map { String(decoding: $0, as: UTF8.self) } }

    /// The content of a regular file, and its status; `nil` if it cannot be read.
    static func text(_ path: String, _ status: inout stat) -> String? {
        bytes(path, &status).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The content of a regular file; `nil` if it cannot be read.
    static func bytes(_ path: String) -> [UInt8]? {
        var status = Glibc.stat()
        return bytes(path, &status)
    }

    private static func bytes(_ path: String, _ status: inout stat) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return try? PrivateFile.content(descriptor, upTo: mostBytes)
    }

    /// All certificates in PEM.
    var pem: String {
        certificates.map { certificate in
            let lines = Data(certificate).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
            return "-----BEGIN CERTIFICATE-----\n\(lines)\n-----END CERTIFICATE-----\n"
        }.joined()
    }

    /// The file with this system's root certificates, independent of variables; `nil` if there is none.
    static let systemFile: String? = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem", "/usr/lib/ssl/cert.pem",
    ].first { FileManager.default.isReadableFile(atPath: $0) }
}
