import HttpWare

/// The certificate to order.
struct AcmeRequest: Sendable {
    /// DNS names in lower case.
    let names: [String]
    /// The key of the certificate.
    let key: CertificateKey
    let challenge: ChallengeKind
    var profile: String?
    /// The renewal identifier of the certificate that the new one replaces. RFC 9773 §5.
    var replaced: String?
}

extension AcmeClient {
    /// Orders a certificate, proves control of its names, and returns the chain in PEM. RFC 8555 §7.4.
    func issue(
        _ wanted: AcmeRequest, answering challenges: any ChallengeAnswerer
    ) async throws(AcmeFailure) -> [UInt8] {
        let directory = try await directory()
        try directory.require(profile: wanted.profile)
        let (url, order) = try await makeOrder(wanted, directory)
        if order.status == .invalid { throw AcmeClient.failure(of: order) }
        for place in order.authorizations {
            try await authorize(try await authorization(place), at: place, wanted, challenges)
        }
        let ready = try await poll(orderUnlessDone: order, at: url, wanted)
        let done = ready.status == .valid ? ready : try await finalize(ready, at: url, wanted)
        guard let place = done.certificate else { throw .badAnswer("the order has no certificate") }
        let answer = try await post(place, nil, "the certificate", accept: "application/pem-certificate-chain")
        let chain = answer.response.content.bytes ?? []
        try AcmeClient.check(chain, wanted, mostCertificates: limits.chain)
        return chain
    }

    // MARK: The order

    private func makeOrder(
        _ wanted: AcmeRequest, _ directory: AcmeDirectory
    ) async throws(AcmeFailure) -> (AcmeUrl, AcmeOrder) {
        var members: [(String, Json)] = [
            ("identifiers", .list(wanted.names.map { .object([("type", "dns"), ("value", .text($0))]) }))
        ]
        if let profile = wanted.profile { members.append(("profile", .text(profile))) }
        // Sent only if the authority offers renewal information: others may refuse an unknown member.
        let isReplacing = wanted.replaced != nil && directory.renewalInfo != nil
        let replacing = isReplacing ? [("replaces", Json.optional(wanted.replaced))] : []
        var answer: Answer
        do throws(AcmeFailure) {
            answer = try await post(directory.newOrder, .object(members + replacing), "the order")
        } catch {
            // The old certificate was replaced already, or is unknown: RFC 9773 §5. The order is made without it.
            guard isReplacing, error.isRefusal("alreadyReplaced") || error.isRefusal("malformed") else { throw error }
            answer = try await post(directory.newOrder, .object(members), "the order")
        }
        guard let text = answer.response.fields[.location] else { throw .badAnswer("the order has no URL") }
        return (try AcmeUrl(text, under: place), try AcmeOrder(try answer.json, for: wanted.names, at: place))
    }

    private func poll(
        orderUnlessDone order: AcmeOrder, at url: AcmeUrl, _ wanted: AcmeRequest
    ) async throws(AcmeFailure) -> AcmeOrder {
        let place = self.place
        let judge = { (order: AcmeOrder) throws(AcmeFailure) -> AcmeOrder? in
            switch order.status {
            case .ready, .valid: return order
            case .pending, .processing: return nil
            case .invalid: throw AcmeClient.failure(of: order)
            }
        }
        if let done = try judge(order) { return done }
        return try await poll(url, "the order") { json throws(AcmeFailure) in
            try judge(try AcmeOrder(json, for: wanted.names, at: place))
        }
    }

    private func finalize(
        _ order: AcmeOrder, at url: AcmeUrl, _ wanted: AcmeRequest
    ) async throws(AcmeFailure) -> AcmeOrder {
        guard let request = wanted.key.makeRequest(for: wanted.names) else {
            throw AcmeFailure(.local, "OpenSSL cannot make a request for a certificate")
        }
        let place = self.place
        let judge = { (json: JsonValue) throws(AcmeFailure) -> AcmeOrder? in
            let order = try AcmeOrder(json, for: wanted.names, at: place)
            switch order.status {
            case .valid: return order
            case .ready, .processing: return nil
            case .pending: throw .badAnswer("the order is pending again")
            case .invalid: throw AcmeClient.failure(of: order)
            }
        }
        let payload = Json.object([("csr", .text(Base64.encodeUrl(request)))])
        let answer = try await post(order.finalize, payload, "the request for the certificate")
        if let done = try judge(try answer.json) { return done }
        return try await poll(url, "the order", first: answer.retryAfter, until: judge)
    }

    private static func failure(of order: AcmeOrder) -> AcmeFailure {
        (order.problem ?? AcmeProblem(.null)).failure("the order failed")
    }

    // MARK: Authorizations

    private func authorization(_ url: AcmeUrl) async throws(AcmeFailure) -> AcmeAuthorization {
        try AcmeAuthorization(try await post(url, nil, "an authorization").json, at: place)
    }

    private func authorize(
        _ authorization: AcmeAuthorization, at url: AcmeUrl, _ wanted: AcmeRequest,
        _ challenges: any ChallengeAnswerer
    ) async throws(AcmeFailure) {
        guard wanted.names.contains(authorization.name) else {
            throw .badAnswer("an authorization is for another name")
        }
        if authorization.status == .valid { return }
        guard authorization.status == .pending else { throw AcmeClient.failure(of: authorization) }
        guard let challenge = authorization.challenges.first(where: { $0.type == wanted.challenge.rawValue }) else {
            let offered = authorization.challenges.map(\.type).joined(separator: ", ")
            throw AcmeFailure(
                .refused("unsupportedChallenge"),
                "the certificate authority does not offer \(wanted.challenge.rawValue) for \(authorization.name)"
                    + (offered.isEmpty ? "" : "; it offers \(offered)"))
        }
        let pending = PendingChallenge(
            kind: wanted.challenge, name: authorization.name, token: challenge.token,
            keyAuthorization: signer.keyAuthorization(of: challenge.token))
        do throws(AcmeFailure) {
            try await challenges.add(pending)
            try await prove(challenge, at: url)
            await challenges.remove(pending)
        } catch {
            await challenges.remove(pending)
            throw error
        }
    }

    private func prove(_ challenge: AcmeAuthorization.Challenge, at url: AcmeUrl) async throws(AcmeFailure) {
        let place = self.place
        let answer = try await post(challenge.url, .object([]), "the challenge")
        try await poll(url, "an authorization", first: answer.retryAfter) { json throws(AcmeFailure) -> Void? in
            let authorization = try AcmeAuthorization(json, at: place)
            switch authorization.status {
            case .valid: return ()
            case .pending: return nil
            default: throw AcmeClient.failure(of: authorization)
            }
        }
    }

    private static func failure(of authorization: AcmeAuthorization) -> AcmeFailure {
        let what = "the proof of control of \(authorization.name) failed"
        guard let problem = authorization.challenges.compactMap(\.problem).first else {
            return AcmeFailure(
                .refused("unauthorized"), "\(what): the authorization is \(authorization.status.rawValue)")
        }
        return problem.failure(what)
    }

    // MARK: The certificate

    /// Refuses a chain that does not match the names and the key, or is not valid from now for some time.
    static func check(
        _ chain: [UInt8], _ wanted: AcmeRequest, mostCertificates: Int, now: WallTime = SystemLoopClock().wallNow()
    ) throws(AcmeFailure) {
        let file = TlsFile(name: "the certificate", bytes: chain)
        let facts: CertificateFacts
        do throws(TlsFault) {
            facts = try CertificateFacts(file)
            let key = TlsFile(name: "the key", bytes: wanted.key.pem)
            _ = try TlsContext(server: TlsContext.Server(identities: [TlsIdentity(chain: file, key: key)]))
        } catch {
            throw .badAnswer(error.reason)
        }
        guard facts.chainCount <= mostCertificates else {
            throw .badAnswer("the chain has more than \(mostCertificates) certificates")
        }
        guard facts.names.isSuperset(of: wanted.names) else { throw .badAnswer("the certificate is for other names") }
        guard facts.start < facts.end, now < facts.end else { throw .badAnswer("the certificate has expired") }
    }

    // MARK: Renewal

    /// The suggested renewal time, and how soon to ask again; `nil` if the authority has no renewal information. RFC 9773 §4.
    func renewalInfo(of id: String) async throws(AcmeFailure) -> (info: RenewalInfo, again: Duration?)? {
        guard let base = try await directory().renewalInfo else { return nil }
        let slash = base.text.hasSuffix("/") ? "" : "/"
        let answer = try await get(try AcmeUrl("\(base.text)\(slash)\(id)", under: place), "the renewal information")
        return (try RenewalInfo(try answer.json), answer.retryAfter)
    }
}
