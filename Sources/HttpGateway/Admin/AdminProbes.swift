import HttpWare

extension AdminEndpoint {
    /// For process supervisors: whether the process is alive, and whether it is ready for requests.
    static func probes(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/healthz", access: .everybody) { _, _ in .abort(with: .plain(.ok, "ok")) },
            AdminEndpoint(path: "/readyz", access: .everybody) { _, _ in
                let phase = subject.phase()
                return .abort(with: .plain(phase == .ready ? .ok : .serviceUnavailable, phase.rawValue))
            },
        ]
    }
}
