import Testing

@testable import HttpWare

@Suite struct TlsContextTests {
    private let files = TestCertificates.shared

    private func fault(_ identity: TlsIdentity) -> String {
        do {
            _ = try TlsContext(server: TlsContext.Server(identities: [identity]))
            return "none"
        } catch {
            return error.reason
        }
    }

    @Test func `a key of another certificate is refused, with both files' names`() {
        #expect(
            fault(files.identity("a", key: "wild"))
                == "wild.key: is not the key of the certificate in a.pem; use the certificate's own key")
    }

    @Test func `an invalid certificate, an invalid key, or a locked one is reported by the file's name`() {
        let text = TlsFile(name: "text", bytes: Array("hello".utf8))
        #expect(fault(TlsIdentity(chain: text, key: files.file("a.key"))) == "text: contains no certificate in PEM")
        #expect(fault(TlsIdentity(chain: files.file("a.pem"), key: text)) == "text: contains no private key in PEM")
        #expect(
            fault(files.identity("a", key: "locked"))
                == "locked.key: the key is encrypted; use a key without a passphrase")
        let broken = TlsFile(
            name: "broken", bytes: Array("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".utf8))
        #expect(
            fault(TlsIdentity(chain: broken, key: files.file("a.key"))).hasPrefix(
                "broken: a certificate cannot be read"))
        #expect(
            fault(TlsIdentity(chain: TlsFile(name: "empty", bytes: []), key: text))
                == "empty: contains no certificate in PEM; the file is empty")
    }

    @Test func `DER in place of PEM is reported with the fix`() {
        let der = TlsFile(name: "der", bytes: [0x30, 0x82, 1, 1, 0x30])
        #expect(
            fault(TlsIdentity(chain: der, key: files.file("a.key")))
                == "der: contains no certificate in PEM; it looks like DER, which openssl x509 -inform DER turns into PEM"
        )
        #expect(
            fault(TlsIdentity(chain: files.file("a.pem"), key: der))
                == "der: contains no private key in PEM; it looks like DER, which openssl pkey -inform DER turns into PEM"
        )
    }

    @Test func `an OCSP response is checked, and holds until it says`() throws {
        #expect(files.file("a.ocsp").bytes.count > 100)
        #expect(
            fault(files.identity("a", staple: "a.key")) == "a.key: is not a successful OCSP response in DER")
        let context = try TlsContext(
            server: TlsContext.Server(identities: [files.identity("a", staple: "a.ocsp")]))
        #expect(context.staples.count == 1)
    }

    @Test func `the authorities that a client trusts are read from the file, or refused by its name`() {
        var options = TlsContext.Client()
        options.authorities = files.file("a.key")
        #expect(throws: TlsFault(.material, "a.key: contains no certificate in PEM")) {
            try TlsContext(client: options)
        }
    }

    @Test func `a certificate that is out of date is said to be`() throws {
        #expect(try files.identity("expired").hasExpired())
        #expect(try !files.identity("a").hasExpired())
    }

    @Test func `names are found whatever their case, wildcards for one label`() throws {
        let context = try TlsContext(
            server: TlsContext.Server(identities: ["a", "wild"].map { files.identity($0) }))
        let (first, wild) = (context.pointer, context.others[0])
        #expect(context.context(for: "WWW.a.test.") == first)
        #expect(context.context(for: "x.b.test") == wild)
        #expect(context.context(for: "b.test") == first)
        #expect(context.context(for: "x.y.b.test") == first)
        #expect(context.context(for: "") == first)
    }

    @Test func `ticket keys change every hour, and a ticket opens for as long as it holds`() throws {
        let keys = TicketKeys()
        let first = try #require(keys.current(at: 0))
        #expect(keys.current(at: 3599)?.name == first.name)
        let second = try #require(keys.current(at: 3600))
        #expect(second.name != first.name)
        _ = keys.current(at: 7200)
        #expect(first.name.withUnsafeBufferPointer { keys.named($0)?.isNewest } == false)
        _ = keys.current(at: 10800)
        #expect(first.name.withUnsafeBufferPointer { keys.named($0) == nil })
    }
}
