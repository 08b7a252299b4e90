import COpenSSL
import COpenSSLShims
import Foundation
import Glibc

@testable import HttpWare

/// Certificates made by `openssl` for a run of the tests, in a temporary folder that goes with them.
final class TestCertificates: Sendable {
    /// Made once, for the first test that asks.
    static let shared = TestCertificates()

    private let folder: URL

    private init() {
        folder = FileManager.default.temporaryDirectory.appending(path: "httpware-tls-\(UUID().uuidString)")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        authority("ca")
        authority("other-ca")
        leaf("a", names: "DNS:a.test,DNS:www.a.test")
        leaf("wild", names: "DNS:*.b.test")
        leaf("rsa", names: "DNS:a.test,DNS:www.a.test", key: ["-newkey", "rsa:2048"])
        leaf("stranger", names: "DNS:a.test", by: "other-ca")
        leaf("address", names: "IP:127.0.0.1")
        leaf("anna", names: "email:anna@a.test,URI:spiffe://a.test/anna b,IP:192.0.2.1", subject: "/O=Example/CN=anna")
        leaf("many", names: (1...40).map { "DNS:n\($0).test" }.joined(separator: ","))
        leaf("expired", names: "DNS:a.test")
        run(["req", "-new", "-key", path("expired.key"), "-subj", "/CN=a.test", "-out", path("expired.csr")])
        run(
            [
                "x509", "-req", "-in", path("expired.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"),
                "-out", path("expired.pem"),
            ] + expired)
        run(["pkey", "-in", path("a.key"), "-aes256", "-passout", "pass:x", "-out", path("locked.key")])
        staple()
    }

    /// Options for a certificate that has ended: OpenSSL 3.4 and later refuse negative days, and earlier versions take no dates.
    private let expired =
        OpenSSL_version_num() >= 0x3040_0000
        ? ["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"] : ["-days", "-1"]

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// The content of a file, under its name.
    func file(_ name: String) -> TlsFile {
        TlsFile(name: name, bytes: (try? Data(contentsOf: folder.appending(path: name))).map(Array.init) ?? [])
    }

    /// A certificate and its key.
    func identity(_ name: String, key: String? = nil, staple: String? = nil) -> TlsIdentity {
        TlsIdentity(
            chain: file("\(name).pem"), key: file("\(key ?? name).key"), staple: staple.map { file($0) })
    }

    /// The output of `openssl` about these bytes.
    func ask(_ arguments: [String], _ input: [UInt8]) throws -> String {
        let file = folder.appending(path: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(input).write(to: file)
        return run(arguments + ["-in", file.path])
    }

    /// The SHA-256 of a certificate's public key, in base64.
    func keyDigest(_ name: String) -> String {
        let text = run(["x509", "-in", path("\(name).pem"), "-pubkey", "-noout"])
        let key = Data(base64Encoded: text.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()) ?? Data()
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = [UInt8](key)
        jose_sha256(nil, 0, bytes, bytes.count, &digest)
        return Data(digest).base64EncodedString()
    }

    private func path(_ name: String) -> String { folder.appending(path: name).path }

    private static let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]

    private func authority(_ name: String) {
        run(
            ["req", "-x509", "-nodes", "-keyout", path("\(name).key"), "-out", path("\(name).pem")]
                + ["-subj", "/CN=\(name)", "-days", "30", "-addext", "basicConstraints=critical,CA:TRUE"]
                + ["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"] + Self.curve)
    }

    private func leaf(
        _ name: String, names: String, key: [String] = TestCertificates.curve, by authority: String = "ca",
        subject: String? = nil
    ) {
        run(
            ["req", "-x509", "-nodes", "-keyout", path("\(name).key"), "-out", path("\(name).pem")]
                + ["-CA", path("\(authority).pem"), "-CAkey", path("\(authority).key"), "-days", "30"]
                + ["-subj", subject ?? "/CN=\(name)", "-addext", "subjectAltName=\(names)"]
                + ["-addext", "basicConstraints=CA:FALSE"] + key)
    }

    /// An OCSP response that says that certificate `a` is good.
    private func staple() {
        let serial = run(["x509", "-in", path("a.pem"), "-noout", "-serial"]).dropFirst("serial=".count)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let index = "V\t350101000000Z\t\t\(serial)\tunknown\t/CN=a\n"
        try? Data(index.utf8).write(to: folder.appending(path: "index.txt"))
        run(["ocsp", "-issuer", path("ca.pem"), "-cert", path("a.pem"), "-reqout", path("a.req")])
        run(
            ["ocsp", "-index", path("index.txt"), "-CA", path("ca.pem"), "-rsigner", path("ca.pem")]
                + ["-rkey", path("ca.key"), "-reqin", path("a.req"), "-respout", path("a.ocsp"), "-ndays", "7"])
    }

    /// Runs `openssl`, and answers what it wrote. Not by Foundation's `Process`, which reads past the end of what the system
    /// reports about open files, and crashes now and then where there are many.
    @discardableResult
    private func run(_ arguments: [String]) -> String {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return "" }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        let words = (["openssl"] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let result = posix_spawn(&process, "/usr/bin/openssl", &actions, nil, words + [nil], environ)
        close(ends[1])
        defer { close(ends[0]) }
        guard result == 0 else { return "" }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(ends[0], &buffer, buffer.count)
            if count > 0 { text += buffer[..<count] } else if count == 0 || errno != EINTR { break }
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return String(decoding: text, as: UTF8.self)
    }
}
