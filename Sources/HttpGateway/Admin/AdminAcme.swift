import Acme
import Credentials
import HttpWare

extension AdminEndpoint {
    /// The certificates that listeners obtain by ACME, and ordering one now.
    static func certificates(_ subject: AdminSubject) -> [AdminEndpoint] {
        guard let certificates = subject.certificates else { return [] }
        return [
            AdminEndpoint(path: "/v1/acme", access: .known) { _, exchange in
                let reports = certificates.reports(at: exchange.wallNow)
                return .abort(
                    with: .json(.object([("certificates", .list(reports.map { shown($0.report, $0.settings) }))])))
            },
            AdminEndpoint(path: "/v1/acme", access: .known, isWrite: true) { request, _ in
                guard let name = request.text("name")?.lowercased(), !name.isEmpty else {
                    return .abort(with: .problem(.badRequest, "name is missing"))
                }
                guard certificates.orderNow(name, on: subject.loop) else {
                    return .abort(
                        with: .problem(.notFound, "no listener gets certificates for \(name.quotedForErrors)"))
                }
                return .abort(with: .json(.object([("ordered", .text(name))])))
            },
        ]
    }

    private static func shown(_ report: CertificateKeeper.Report, _ settings: AcmeSettings) -> Json {
        .object([
            ("name", .text(report.name)), ("directory", .text(settings.directory.text)),
            ("issuer", .optional(report.certificate?.issuer)), ("start", .optional(report.certificate?.start.rfc3339)),
            ("end", .optional(report.certificate?.end.rfc3339)), ("due", .text(report.due.rfc3339)),
            ("failures", .number(report.failures)), ("problem", .optional(report.problem)),
        ])
    }
}
