import Credentials
public import HttpWare
import Synchronization

/// How `tokenInject` replaces the placeholder of a token by the token.
public struct PlaceholderRules: Sendable {
    /// A place in requests where placeholders are replaced.
    public enum Place: String, OptionWord {
        case headers, path, query, form, json
    }

    /// Where placeholders are replaced.
    public let places: PlaceholderSwap.Places
    /// Whether the token is replaced by the placeholder again in responses.
    public internal(set) var scrubs = false
    /// The output of one line for each exchange that uses the token.
    var audit: LogSink?
    private let searches = TokenSearches()

    /// Whether placeholders in content are replaced.
    var needsContent: Bool { !places.isDisjoint(with: [.form, .json]) }

    /// Reads `placeholder` of the ware.
    init(options: inout OptionsReader) {
        var places: [Place] = [.headers]
        options.read(
            "in", into: &places,
            doc:
                "where placeholders are replaced: headers (also inside Basic), the path, values of the query, of forms and of JSON content"
        )
        options.refuseEmpty("in", "write headers, path, query, form or json")
        self.places = PlaceholderSwap.Places(
            places.map { place in
                switch place {
                case .headers: .headers
                case .path: .path
                case .query: .query
                case .form: .form
                case .json: .json
                }
            })
    }

    /// Replaces the placeholder by the token. A request without the placeholder passes unchanged.
    func handle(_ request: inout HttpRequest, in exchange: Exchange, _ credential: Credential?) -> Verdict {
        guard let credential, let issued = credential.issued else { return .pass }
        if exchange[WantsCredentials.self] == false || request.method == .connect { return .pass }
        // The response to TRACE contains the request, so that the client would get the token. RFC 9110 §9.3.8.
        guard !request.method.returnsRequest, exchange.holdsPlaceholder(issued.placeholder, request, in: places) else {
            exchange.forgetSwap(of: issued.placeholder)
            return .pass
        }
        let wall = exchange.wallNow
        if let token = credential.current(wall) { return swap(token, of: credential, issued, &request, exchange) }
        return TokenHold.holdRequest(credential, HoldLimits(), kept: 0, request, exchange, at: wall) {
            request, exchange in
            guard let token = credential.current(exchange.wallNow) else {
                return .abort(with: TokenHold.refusal(credential, nil, exchange))
            }
            return swap(token, of: credential, issued, &request, exchange)
        }
    }

    private func swap(
        _ token: IssuedToken, of credential: Credential, _ issued: IssuedPlaceholder, _ request: inout HttpRequest,
        _ exchange: Exchange
    ) -> Verdict {
        var search: TokenSearch?
        if scrubs {
            search = searches.search(for: token)
            if search == nil {
                return .abort(
                    with: .problem(
                        .badGateway, "credential \(credential.name): the token is too short to be searched for"))
            }
        }
        exchange.swapPlaceholder(PlaceholderSwap(issued.placeholder, by: token.value, in: places, search: search))
        CarriedTokens.note(credential, token.number, in: exchange)
        exchange.bindAuthority(of: request)
        exchange.note("the placeholder", asDecision: false)
        if scrubs { PlaceholderRules.askForWhole(&request) }
        TokenAudit.watch(issued.placeholder, of: credential.name, issued.run, audit, exchange)
        return .pass
    }

    /// Asks for a response that can be searched: the whole, in a coding that can be decoded.
    private static func askForWhole(_ request: inout HttpRequest) {
        request.fields.remove(.range as FieldName)
        request.fields.remove(.ifRange as FieldName)
        guard request.fields.contains(.acceptEncoding) else { return }
        let known = request.fields.values(of: .acceptEncoding).flatMap { $0.split(separator: ",") }.map {
            $0.trimmed
        }.filter { member in
            let name = String(member.prefix { $0 != ";" }).trimmed.lowercased()
            return name == "identity" || name == "x-gzip" || ContentDecoder.names.contains(name)
        }
        // Cannot throw: members of a valid list make a valid list.
        try? request.fields.set(.acceptEncoding, to: known.isEmpty ? "identity" : known.joined(separator: ", "))
    }
}

/// The search for the last token, made once for each token. Guarded by a mutex.
private final class TokenSearches: Sendable {
    private let last = Mutex<(number: Int, search: TokenSearch?)?>(nil)

    func search(for token: IssuedToken) -> TokenSearch? {
        last.withLock { last in
            if let last, last.number == token.number { return last.search }
            let search = TokenSearch(token.value)
            last = (token.number, search)
            return search
        }
    }
}

extension StringProtocol {
    fileprivate var trimmed: String {
        String(drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
