import ArgumentParser
import Glibc
import HttpWare

/// `httpware acme issue`: orders a certificate now, after a trial.
struct AcmeIssueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "issue",
        abstract: "Let a running gateway order a certificate for NAME now.",
        discussion: """
            An order at the staging directory comes first, if one is known. If it fails, nothing is ordered, and the command exits 1. \
            The present certificate stays in use until the new one is there; \(Program.name) acme status shows how far it is.
            """)

    @Argument(help: "The DNS name.")
    var name: String
    @Flag(help: "Order at once, without a trial. Authorities limit the number of orders and of failures.")
    var noStaging = false
    @OptionGroup var admin: AdminOption

    func run() throws {
        let gateway = AcmeGateway(client: try admin.client())
        let name = name.lowercased()
        let places = try gateway.certificates(of: name)
        if !noStaging {
            if places.contains(where: { $0.staging != nil }) {
                guard try gateway.tryOrder(name) else {
                    Terminal.error(
                        TerminalStyle.plain.shown("nothing was ordered at \(AcmeGateway.directories(places))"))
                    throw ExitCode(1)
                }
            } else {
                Terminal.error(
                    TerminalStyle.plain.shown(
                        "no staging directory of \(AcmeGateway.directories(places)) is known, so no order was tried there first"
                    ))
            }
        }
        try gateway.order(name)
        try Terminal.result(
            TerminalStyle.plain.shown(
                "a certificate for \(name) is being ordered at \(AcmeGateway.directories(places))"))
    }
}

/// The certificates of a running gateway, over its admin listener.
struct AcmeGateway {
    let client: AdminClient

    /// A member of the answer to `GET /v1/acme`.
    struct Certificate: Decodable {
        struct Trial: Decodable {
            let state: String
            let problem: String?
        }

        let name: String
        let directory: String
        let staging: String?
        let trial: Trial?
    }

    private struct Certificates: Decodable { let certificates: [Certificate] }

    /// The pause between two looks at a trial, in microseconds. A trial ends by itself after at most six minutes; `mostLooks` is more than that.
    private static let pause: UInt32 = 250_000
    private static let mostLooks = 1600

    static func directories(_ places: [Certificate]) -> String {
        places.map(\.directory).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
            .joined(separator: " and ")
    }

    /// The certificates of a name. If the gateway has none, the program ends.
    func certificates(of name: String) throws -> [Certificate] {
        let all = try client.get("/v1/acme").decoded(Certificates.self).certificates
        let found = all.filter { $0.name == name }
        guard !found.isEmpty else {
            Terminal.error(
                TerminalStyle.plain.shown("no listener of the running gateway gets certificates for \(name)"))
            throw ExitCode(1)
        }
        return found
    }

    /// Orders a certificate. If the gateway refuses, the program ends.
    func order(_ name: String) throws {
        let answer = try client.post("/v1/acme\(AdminQuery([("name", name)]).text)")
        guard answer.status == 200 else { throw answer.refusal }
    }

    /// Tries an order for a name at the staging directory, and shows the result. Returns whether it succeeded.
    func tryOrder(_ name: String) throws -> Bool {
        let answer = try client.post("/v1/acme/trial\(AdminQuery([("name", name)]).text)")
        guard answer.status == 200 else { throw answer.refusal }
        for _ in 0..<AcmeGateway.mostLooks {
            let tried = try certificates(of: name).filter { $0.staging != nil }
            if tried.contains(where: { $0.trial?.state == "underWay" }) {
                usleep(AcmeGateway.pause)
                continue
            }
            var isWhole = true
            for one in tried {
                let place = "\(name): the trial at \(one.staging ?? "")"
                if one.trial?.state == "passed" {
                    try Terminal.result(TerminalStyle.plain.shown("\(place) succeeded"))
                } else {
                    isWhole = false
                    let reason = one.trial?.problem ?? "the gateway has reloaded its configuration meanwhile"
                    Terminal.error(TerminalStyle.plain.shown("\(place) failed: \(reason)"))
                }
            }
            return isWhole && !tried.isEmpty
        }
        Terminal.error(TerminalStyle.plain.shown("\(name): the trial does not end"))
        throw ExitCode(3)
    }
}
