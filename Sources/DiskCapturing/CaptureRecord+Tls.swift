import HttpWare

/// The TLS facts of a connection as bytes.
extension CaptureRecord {
    static func tls(_ facts: TlsFacts?, _ rest: inout RecordWriter) {
        rest.optional(facts) { rest, facts in
            rest.text(facts.version)
            rest.text(facts.cipher)
            rest.optional(facts.alpn)
            rest.optional(facts.name)
            rest.flag(facts.isResumed)
            for certificate in [facts.certificate, facts.clientCertificate] {
                rest.optional(certificate) { CaptureRecord.certificate($1, &$0) }
            }
        }
    }

    private static func certificate(_ certificate: TlsFacts.Certificate, _ rest: inout RecordWriter) {
        rest.text(certificate.subject)
        rest.text(certificate.issuer)
        rest.list(certificate.names) { $0.text($1) }
        rest.number(certificate.moreNames)
        rest.number(certificate.notBefore.seconds)
        rest.number(certificate.notAfter.seconds)
        rest.text(certificate.sha256)
    }

    static func readTls(_ rest: inout RecordReader) throws(DamagedRecord) -> TlsFacts? {
        guard try rest.flag() else { return nil }
        let text = { (rest: inout RecordReader) throws(DamagedRecord) -> String in try rest.text() }
        return TlsFacts(
            version: try rest.text(), cipher: try rest.text(), alpn: try rest.optional(text),
            name: try rest.optional(text), isResumed: try rest.flag(),
            certificate: try rest.optional(readCertificate), clientCertificate: try rest.optional(readCertificate))
    }

    private static func readCertificate(_ rest: inout RecordReader) throws(DamagedRecord) -> TlsFacts.Certificate {
        TlsFacts.Certificate(
            subject: try rest.text(), issuer: try rest.text(),
            names: try rest.list { (rest) throws(DamagedRecord) in try rest.text() },
            moreNames: max(0, try rest.number()), notBefore: WallTime(seconds: Int64(try rest.number())),
            notAfter: WallTime(seconds: Int64(try rest.number())), sha256: try rest.text())
    }
}
