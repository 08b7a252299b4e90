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

    /// What `openssl verify` says of a certificate, beside the root.
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

    @Test func `a root with domains signs for them, and nobody believes it about others`() throws {
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

    @Test func `a host that a client refuses twice within a minute is left alone for a while`() {
        let pinned = PinnedHosts()
        let key = PinnedHosts.Key(client: nil, principal: nil, host: "a.test")
        let second: Int64 = 1_000_000_000
        #expect(!pinned.refused(key, isSure: true, at: 1, for: 600 * second))
        #expect(!pinned.isPinned(key, at: 2))
        #expect(!pinned.refused(key, isSure: true, at: 100 * second, for: 600 * second), "too long after the first")
        #expect(pinned.refused(key, isSure: false, at: 130 * second, for: 600 * second))
        #expect(pinned.isPinned(key, at: 131 * second))
        #expect(!pinned.isPinned(PinnedHosts.Key(client: nil, principal: "anna", host: "a.test"), at: 131 * second))
        #expect(!pinned.isPinned(key, at: 731 * second))
    }

    @Test func `beyond the most that are remembered, the oldest client is forgotten, and no other`() {
        let pinned = PinnedHosts()
        func key(_ number: Int) -> PinnedHosts.Key {
            PinnedHosts.Key(client: nil, principal: nil, host: "\(number).test")
        }
        func pin(_ number: Int) {
            for time in Int64(1)...2 { _ = pinned.refused(key(number), isSure: true, at: time, for: 1_000_000) }
        }
        for number in 0..<PinnedHosts.most { pin(number) }
        #expect(pinned.isPinned(key(0), at: 3))
        for more in 1...3 {
            pin(PinnedHosts.most + more)
            #expect(!pinned.isPinned(key(more - 1), at: 3))
            #expect(pinned.isPinned(key(more), at: 3) && pinned.isPinned(key(PinnedHosts.most + more), at: 3))
        }
        for number in 0..<2 * PinnedHosts.most + 10 { pin(100_000 + number) }
        #expect(!pinned.isPinned(key(5), at: 3) && pinned.isPinned(key(100_000 + PinnedHosts.most + 10), at: 3))
        #expect(!pinned.isPinned(key(100_000 + PinnedHosts.most + 9), at: 3))
    }

    @Test func `a client that trusted us before, and closes, refuses nothing`() {
        let pinned = PinnedHosts()
        let key = PinnedHosts.Key(client: nil, principal: nil, host: "a.test")
        pinned.accepted(key)
        for time in Int64(1)...5 { #expect(!pinned.refused(key, isSure: false, at: time, for: 1000)) }
        #expect(!pinned.refused(key, isSure: true, at: 6, for: 1000))
        #expect(pinned.refused(key, isSure: true, at: 7, for: 1000))
    }
}
