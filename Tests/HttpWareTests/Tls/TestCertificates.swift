import Foundation

@testable import HttpWare

/// Certificates made by `openssl` for a run of the tests, in a temporary folder that goes with them.
final class TestCertificates: Sendable {
    /// Made once, by whoever asks first.
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
        leaf("expired", names: "DNS:a.test")
        run(["req", "-new", "-key", path("expired.key"), "-subj", "/CN=a.test", "-out", path("expired.csr")])
        run([
            "x509", "-req", "-in", path("expired.csr"), "-CA", path("ca.pem"), "-CAkey", path("ca.key"), "-days", "-1",
            "-out", path("expired.pem"),
        ])
        run(["pkey", "-in", path("a.key"), "-aes256", "-passout", "pass:x", "-out", path("locked.key")])
        staple()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// What a file holds, under its name.
    func file(_ name: String) -> TlsFile {
        TlsFile(name: name, bytes: (try? Data(contentsOf: folder.appending(path: name))).map(Array.init) ?? [])
    }

    /// A certificate and its key.
    func identity(_ name: String, key: String? = nil, staple: String? = nil) -> TlsIdentity {
        TlsIdentity(
            chain: file("\(name).pem"), key: file("\(key ?? name).key"), staple: staple.map { file($0) })
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

    @discardableResult
    private func run(_ arguments: [String]) -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/openssl")
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return "" }
        let text = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: text, as: UTF8.self)
    }

    private typealias Pipe = Foundation.Pipe
}
