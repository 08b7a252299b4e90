import COpenSSL
import COpenSSLShims
import Foundation
@testable import HttpWare
import Testing

@Suite struct CertificateAuthorityTests {
    private let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-ca-\(UUID())").path

    private func made(only domains: [String] = []) throws -> CertificateAuthority {
        try CertificateAuthority.make(in: folder, name: "httpware CA a@b", only: domains, isReplacing: true)
        return try CertificateAuthority(folder: folder)
    }

    /// The verdict of `openssl verify` about a certificate, beside the root.
    private func verified(_ leaf: OpaquePointer, by authority: CertificateAuthority) -> Int32 {
        var root: OpaquePointer?
        authority.pem.withUnsafeBytes { bytes in
            let memory = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count))
            root = PEM_read_bio_X509(memory, nil, nil, nil)
            BIO_free(memory)
        }
        let store = X509_STORE_new()
        X509_STORE_add_cert(store, root)
        let context = X509_STORE_CTX_new()
        X509_STORE_CTX_init(context, store, leaf, nil)
        X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER)
        _ = X509_verify_cert(context)
        defer {
            X509_STORE_CTX_free(context)
            X509_STORE_free(store)
            X509_free(root)
        }
        return X509_STORE_CTX_get_error(context)
    }

    @Test func `a certificate is verified by the root, for its host only`() throws {
        let authority = try made()
        for (host, isAddress) in [("example.com", false), ("192.0.2.1", true), ("[2001:db8::1]", true)] {
            let leaf = try #require(authority.certificate(for: host))
            defer { X509_free(leaf) }
            #expect(verified(leaf, by: authority) == X509_V_OK)
            let bare = host.filter { $0 != "[" && $0 != "]" }
            #expect(
                (isAddress ? X509_check_ip_asc(leaf, bare, 0) : X509_check_host(leaf, bare, bare.utf8.count, 0, nil))
                    == 1)
            #expect(X509_check_host(leaf, "other.test", 10, 0, nil) == 0)
        }
    }

    @Test func `an authority that another program has made is believed`() throws {
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        for name in ["ca.pem", "ca.key"] {
            let path = "\(folder)/\(name)"
            try Data(TestCertificates.shared.file(name).bytes).write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        }
        let authority = try CertificateAuthority(folder: folder)
        let leaf = try #require(authority.certificate(for: "example.com"))
        defer { X509_free(leaf) }
        #expect(verified(leaf, by: authority) == X509_V_OK)
    }

    @Test func `a root with domains signs for them, and clients do not trust it for others`() throws {
        let authority = try made(only: ["example.com"])
        for (host, result) in [
            ("example.com", X509_V_OK), ("a.b.example.com", X509_V_OK),
            ("example.org", X509_V_ERR_PERMITTED_VIOLATION), ("192.0.2.1", X509_V_ERR_EXCLUDED_VIOLATION),
        ] {
            let leaf = try #require(authority.certificate(for: host))
            defer { X509_free(leaf) }
            #expect(verified(leaf, by: authority) == result, "\(host)")
        }
    }

    @Test func `a host is signed for once, however many ask, and those asked for last are kept`() async throws {
        let authority = try made()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for number in 0..<50 { X509_free(authority.certificate(for: "h\(number).test")) } }
            }
        }
        #expect(authority.counts.signed == 50)
        for number in 0..<2000 { X509_free(authority.certificate(for: "n\(number).test")) }
        #expect(authority.counts.kept <= CertificateAuthority.mostLeaves)
        let signed = authority.counts.signed
        X509_free(authority.certificate(for: "n1999.test"))
        #expect(authority.counts.signed == signed)
    }

    @Test func `the key is for its owner only, and one that others can read is refused`() throws {
        _ = try made()
        let key = "\(folder)/ca.key"
        #expect(try FileManager.default.attributesOfItem(atPath: key)[.posixPermissions] as? Int == 0o600)
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: key)
        #expect { try CertificateAuthority(folder: folder) } throws: { "\($0)".contains("chmod 600") }
    }

    @Test func `a folder that others can write to is refused`() throws {
        _ = try made()
        for rights in [0o700, 0o755] {
            try FileManager.default.setAttributes([.posixPermissions: rights], ofItemAtPath: folder)
            _ = try CertificateAuthority(folder: folder)
        }
        for rights in [0o770, 0o777, 0o702] {
            try FileManager.default.setAttributes([.posixPermissions: rights], ofItemAtPath: folder)
            #expect { try CertificateAuthority(folder: folder) } throws: { "\($0)".contains("chmod 700 \(folder)") }
        }
    }

    @Test(arguments: [
        ("ca.key", ""), ("ca.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), ("ca.pem", ""),
        ("ca.pem", "x"),
    ])
    func `a file that holds something else is named`(name: String, text: String) throws {
        _ = try made()
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
        #expect { try CertificateAuthority(folder: folder) } throws: { "\($0)".contains(name) }
    }

    @Test func `the key of another authority is refused`() throws {
        _ = try made()
        let key = try Data(contentsOf: URL(filePath: "\(folder)/ca.key"))
        _ = try made()
        try key.write(to: URL(filePath: "\(folder)/ca.key"))
        #expect { try CertificateAuthority(folder: folder) } throws: { "\($0)".contains("not the key") }
    }

    @Test func `an authority that is there is kept, half of one is replaced`() throws {
        let first = try made()
        try CertificateAuthority.make(in: folder, name: "x")
        #expect(try CertificateAuthority(folder: folder).fingerprint == first.fingerprint)
        try FileManager.default.removeItem(atPath: "\(folder)/ca.pem")
        try CertificateAuthority.make(in: folder, name: "x")
        #expect(try CertificateAuthority(folder: folder).fingerprint != first.fingerprint)
    }

    @Test func `many that make an authority at once have one`() async throws {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { [folder] in try? CertificateAuthority.make(in: folder, name: "x") } }
        }
        let one = try CertificateAuthority(folder: folder).fingerprint
        #expect(try CertificateAuthority(folder: folder).fingerprint == one)
    }

    @Test(arguments: ["pkcs8", "ec"])
    func `a key that openssl wrote is read, in both of its forms`(form: String) throws {
        _ = try made()
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        let converted = "\(folder)/converted"
        process.arguments =
            form == "ec"
            ? ["openssl", "ec", "-in", "\(folder)/ca.key", "-out", converted]
            : ["openssl", "pkcs8", "-topk8", "-nocrypt", "-in", "\(folder)/ca.key", "-out", converted]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try FileManager.default.removeItem(atPath: "\(folder)/ca.key")
        try FileManager.default.moveItem(atPath: converted, toPath: "\(folder)/ca.key")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "\(folder)/ca.key")
        _ = try CertificateAuthority(folder: folder)
    }

    @Test func `the same object serves until the files change`() throws {
        _ = try made()
        let first = try CertificateAuthority.shared(folder: folder)
        #expect(try CertificateAuthority.shared(folder: folder) === first)
        _ = try made()
        let second = try CertificateAuthority.shared(folder: folder)
        #expect(second !== first)
        #expect(second.fingerprint != first.fingerprint)
    }

    @Test(arguments: [
        "*", "*.test", "a.*.test", "-a.test", "a.-b.test", "7", "127.1", "0x7f.1", "0x7f000001", "2130706433", "a.0x1f",
        "0x", "a.0x", "a b", "a/b", "a~b.test", "", ".", "a..test", "a.test.",
        String(repeating: "a", count: 64) + ".test",
        String(repeating: "a.", count: 126) + "test",
    ])
    func `a host that is neither an address nor the name of one host gets no certificate`(host: String) throws {
        let authority = try made()
        #expect(authority.certificate(for: host) == nil)
        #expect(authority.counts.signed == 0)
    }

    @Test(arguments: [
        "a", "localhost", "a-b.test", "my_host.test", "_dmarc.test", "7.test", "1e100.net", "xn--p1ai", "a-.test",
        "0xg",
        "x0x7f", "192.0.2.1", "[::1]", "::1",
    ])
    func `a usual host gets a certificate`(host: String) throws {
        let leaf = try made().certificate(for: host)
        #expect(leaf != nil)
        X509_free(leaf)
    }

    @Test func `the certificate of a new host costs little more than its signature`() throws {
        let authority = try made()
        let key = try #require(authority_make_key())
        defer { EVP_PKEY_free(key) }
        func time(_ body: (Int) -> Void) -> Duration {
            body(0)
            return processorTime { for number in 1...200 { body(number) } }
        }
        var signature = [UInt8](repeating: 0, count: 128)
        let signing = time { _ in
            let context = EVP_MD_CTX_new()
            defer { EVP_MD_CTX_free(context) }
            var count = signature.count
            EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key)
            EVP_DigestSign(context, &signature, &count, signature, 64)
        }
        let making = time { X509_free(authority.certificate(for: "h\($0).test")) }
        #expect(making < signing * 6, "\(making) for certificates, \(signing) for signatures")
    }
}
