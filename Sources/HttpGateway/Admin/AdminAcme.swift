import Acme
import Credentials
import HttpWare

extension AdminEndpoint {
    /// The certificates that listeners obtain by ACME, ordering one now, and trying an order at the staging directory.
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
            AdminEndpoint(path: "/v1/acme/trial", access: .known, isWrite: true) { request, exchange in
                guard let name = request.text("name")?.lowercased(), !name.isEmpty else {
                    return .abort(with: .problem(.badRequest, "name is missing"))
                }
                guard certificates.tryNow(name, on: subject.loop) else {
                    let isKnown = certificates.reports(at: exchange.wallNow).contains { $0.report.name == name }
                    return .abort(
                        with: isKnown
                            ? .problem(.conflict, "\(name): no staging directory is known; write tls.acme.staging")
                            : .problem(.notFound, "no listener gets certificates for \(name.quotedForErrors)"))
                }
                return .abort(with: .json(.object([("tried", .text(name))])))
            },
        ]
    }

    private static func shown(_ report: CertificateKeeper.Report, _ settings: AcmeSettings) -> Json {
        .object([
            ("name", .text(report.name)), ("directory", .text(settings.directory.text)),
            ("issuer", .optional(report.certificate?.issuer)), ("start", .optional(report.certificate?.start.rfc3339)),
            ("end", .optional(report.certificate?.end.rfc3339)), ("due", .text(report.due.rfc3339)),
            ("failures", .number(report.failures)), ("problem", .optional(report.problem)),
            ("staging", .optional(settings.staging?.text)),
            ("trial", report.trial.map { shown($0) } ?? .null),
        ])
    }

    private static func shown(_ trial: CertificateKeeper.Trial) -> Json {
        switch trial {
        case .underWay: .object([("state", "underWay")])
        case .passed(let time): .object([("state", "passed"), ("at", .text(time.rfc3339))])
        case .failed(let reason, let time):
            .object([("state", "failed"), ("at", .text(time.rfc3339)), ("problem", .text(reason))])
        }
    }
}
