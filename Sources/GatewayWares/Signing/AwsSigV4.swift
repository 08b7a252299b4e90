import Credentials
public import HttpWare
import Wares

/// Signs requests with AWS Signature Version 4, so that clients need no AWS keys.
public struct AwsSigV4: Middleware, ContentEditor {
    /// Where the keys come from.
    enum Source: Sendable {
        case fixed(AwsKeys)
        /// Keys that are renewed: the tokens of a credential that belongs to this ware.
        case renewed(Credential)
    }

    /// `nil` only if the options are invalid or only described; no request arrives then.
    private let source: Source?
    private let signer: AwsSigner
    /// Whether content is sent without a signature.
    public var unsignedPayload = false
    /// Whether content is signed in chunks while it streams.
    public var streaming = false
    /// Further fields that are signed.
    public var headers: [FieldName] = []
    /// The largest content that is signed as a whole.
    public var maxBody = ByteCount.mebibytes(1)

    public var bindsAuthority: Bool { true }
    public var holdsState: Bool { if case .renewed = source { true } else { false } }

    /// Signs with keys that never change; `nil` if one is empty or invalid.
    public init?(
        region: String, service: String, accessKeyId: String, secretAccessKey: Secret, sessionToken: Secret? = nil
    ) {
        guard let keys = AwsKeys(accessKeyId, secretAccessKey, sessionToken) else { return nil }
        self.init(.fixed(keys), region, service)
    }

    init(_ source: Source?, _ region: String, _ service: String) {
        self.source = source
        signer = AwsSigner(region: region, service: service)
    }

    private static let date: FieldName = "X-Amz-Date"
    private static let token: FieldName = "X-Amz-Security-Token"
    private static let contentDigest: FieldName = "X-Amz-Content-Sha256"
    private static let decodedLength: FieldName = "X-Amz-Decoded-Content-Length"
    /// The digest of no content, in hexadecimal.
    static let emptyDigest = Array(Digest256(of: UnsafeRawBufferPointer(start: nil, count: 0)).hex.utf8)
    private static let unsignedWord = Array("UNSIGNED-PAYLOAD".utf8)
    private static let unsignedTrailerWord = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    private static let chunksWord = Array("STREAMING-AWS4-HMAC-SHA256-PAYLOAD".utf8)

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        unsignedPayload || streaming || !isSigned(request) || isInUnsignedChunks(request) ? nil : maxBody.bytes
    }

    /// Whether the client sends its content in chunks that are not signed, as the SDKs of AWS do since 2025. Such content has checksums
    /// but no signatures, so it stays valid with a new signature of the head.
    private func isInUnsignedChunks(_ request: borrowing HttpRequest) -> Bool {
        request.fields[AwsSigV4.contentDigest] == AwsSigV4.unsignedTrailerWord
    }

    private func isSigned(_ request: borrowing HttpRequest) -> Bool {
        !request.method.returnsRequest && request.method != .connect
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard isSigned(request) else {
            // The response to TRACE contains the request, so the client would see the signature. RFC 9110 §9.3.8.
            exchange.note("no signature in \(request.method)")
            return .pass
        }
        let wall = exchange.wallNow
        switch source {
        case .fixed(let keys): return sign(&request, exchange, wall, number: 0) { keys }
        case .renewed(let credential):
            if let number = credential.freshNumber(at: wall), signer.lastKey(on: AwsTime(wall), number: number) != nil {
                return sign(&request, exchange, wall, number: number) { nil }
            }
            if let token = credential.current(wall) { return sign(&request, exchange, wall, token) }
            return TokenHold.holdRequest(credential, HoldLimits(), kept: 0, request, exchange, at: wall) {
                request, exchange in
                guard let token = credential.current(exchange.wallNow) else {
                    // A dry run has no keys.
                    if exchange.isDryRun { return .pass }
                    return .abort(with: TokenHold.refusal(credential, nil, exchange))
                }
                return sign(&request, exchange, exchange.wallNow, token)
            }
        case nil: return failed(exchange)
        }
    }

    private func sign(
        _ request: inout HttpRequest, _ exchange: Exchange, _ wall: WallTime, _ token: IssuedToken
    ) -> Verdict {
        sign(&request, exchange, wall, number: token.number) { AwsKeys(packed: token.value) }
    }

    private func sign(
        _ request: inout HttpRequest, _ exchange: Exchange, _ wall: WallTime, number: Int, _ keys: () -> AwsKeys?
    ) -> Verdict {
        let time = AwsTime(wall)
        guard let key = signer.key(on: time, number: number, keys) else { return failed(exchange) }
        let payload: [UInt8]
        switch describeContent(of: &request) {
        case .success(let word): payload = word
        case .failure(let refusal):
            exchange.note("rejected: \(refusal.detail)", asDecision: true)
            return .abort(with: .problem(refusal.status, refusal.detail))
        }
        let isChunked = payload == AwsSigV4.chunksWord
        let names = exchange.fixUpstreamNames(of: &request)
        request.fields.remove(.authorization)
        guard (try? request.fields.set(AwsSigV4.date, toRaw: time.text)) != nil, setToken(of: key, in: &request.fields)
        else { return failed(exchange) }
        let target = request.upstreamTargetBytes
        let question = target.firstIndex(of: 0x3f)
        let signed = AwsSigner.Request(
            method: request.method.name,
            path: names.basePath.isEmpty && question == nil
                ? target : Array(names.basePath.utf8) + target[..<(question ?? target.endIndex)],
            query: question.map { Array(target[($0 + 1)...]) }, host: names.authority, payload: payload)
        let (authorization, signature) = signer.sign(
            signed, fields: request.fields, others: headers, at: time, with: key)
        guard (try? request.fields.set(.authorization, toRaw: authorization)) != nil else { return failed(exchange) }
        if isChunked { exchange.filterRequestContent(with: AwsChunkedContent(key, time, signature)) }
        exchange.noteInjection(into: .authorization)
        exchange.noteInjection(into: AwsSigV4.token)
        exchange.bindAuthority(of: request)
        return .pass
    }

    private func setToken(of key: AwsSigningKey, in fields: inout HttpFields) -> Bool {
        fields.remove(AwsSigV4.token)
        guard let token = key.sessionToken else { return true }
        return (try? fields.set(AwsSigV4.token, to: token.revealed)) != nil
    }

    private func failed(_ exchange: Exchange) -> Verdict {
        exchange.note("rejected: the request cannot be signed", asDecision: true)
        return .abort(with: .problem(.internalServerError, "the request cannot be signed"))
    }

    // MARK: Content

    private struct Refusal: Error {
        let status: HttpStatus
        let detail: String
    }

    /// Sets the fields that describe the content. Returns the value that the signature covers in its place.
    private func describeContent(of request: inout HttpRequest) -> Result<[UInt8], Refusal> {
        let own = request.fields[AwsSigV4.contentDigest]
        if let own, own.hasPrefix("STREAMING-") {
            if isInUnsignedChunks(request) { return .success(Array(own.utf8)) }
            return .failure(
                Refusal(
                    status: .badRequest,
                    detail:
                        "the content is in chunks that the client has signed, which cannot be signed again; set the client's option payload_signing_enabled to false, so that it sends \(AwsSigV4.unsignedTrailerWord)"
                ))
        }
        let word: [UInt8]
        var demandsField = own != nil || signer.signsPlainPaths || signer.service == "aoss"
        if request.content.isEmpty || request.upgrade != nil {
            word = AwsSigV4.emptyDigest
        } else if unsignedPayload {
            word = AwsSigV4.unsignedWord
            demandsField = true
        } else if let bytes = request.content.bytes {
            var digits: [UInt8] = []
            digits.reserveCapacity(64)
            bytes.withUnsafeBytes { Digest256(of: $0) }.appendHex(to: &digits)
            word = digits
        } else if streaming {
            word = AwsSigV4.chunksWord
            demandsField = true
            guard let length = request.content.length, let encoded = AwsChunkedContent.length(of: length) else {
                return .failure(
                    Refusal(status: .lengthRequired, detail: "content that is signed in chunks needs a Content-Length"))
            }
            request.content = .streamed(length: encoded)
            request.fields.set(AwsSigV4.decodedLength, to: length)
            let codings = ["aws-chunked"] + request.fields.listMembers(of: .contentEncoding)
            guard (try? request.fields.set(.contentEncoding, to: codings.joined(separator: ", "))) != nil else {
                return .failure(Refusal(status: .badRequest, detail: "Content-Encoding is invalid"))
            }
        } else {
            return .failure(
                Refusal(status: .contentTooLarge, detail: "content that is signed as a whole is at most \(maxBody)"))
        }
        request.fields.remove(AwsSigV4.contentDigest)
        if demandsField, (try? request.fields.set(AwsSigV4.contentDigest, toRaw: word)) == nil {
            return .failure(Refusal(status: .internalServerError, detail: "the request cannot be signed"))
        }
        return .success(word)
    }
}

extension AwsSigV4: ConfigurableWare {
    public static let name: WareName = "awsSigV4"
    public static let chainPlace: ChainPlace? = .signing
    public static let orderRisks: [OrderRisk] = [
        .before(
            .tokenRefresh, .tokenInjection,
            consequence: "a later change of the request would make the signature invalid; put awsSigV4 last")
    ]
    public static let about = WareAbout(
        "Signs requests with AWS Signature Version 4, so that clients need no AWS keys.",
        source: "AWS Signature Version 4; Envoy, KrakenD EE",
        example: #"""
            - awsSigV4: { region: eu-central-1, service: s3, accessKeyId: "${AWS_ACCESS_KEY_ID:-AKIDEXAMPLE}", secretAccessKey: "${AWS_SECRET_ACCESS_KEY:-change-me}", streaming: true }
            - awsSigV4: { region: eu-central-1, service: execute-api, from: conf/wares/aws-credentials, profile: gateway }
            """#,
        details: #"""
            The keys are written as `accessKeyId` and `secretAccessKey`, or come `from` elsewhere. `environment` reads
            `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` when the configuration is loaded.
            `container` requests temporary keys from the endpoint that ECS and EKS name in
            `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `AWS_CONTAINER_CREDENTIALS_FULL_URI`, and new ones five minutes before
            these expire. A path is that of a shared credentials file, which is read again every five minutes. One
            request for keys runs at a time; requests without keys wait for it as in `tokenInject`, for up to 10 s.

            The signature covers the method, the path, the query, `Host`, `Content-Type`, `Content-MD5`, all `X-Amz-…` fields, those
            in `headers`, and the content. They are signed as the service gets them, with its `Host` field and base path. If
            the endpoints of the service have different host names, the request is sent with the first one. `Authorization` and a
            security token of the client are removed. Put this ware behind all wares that change the request.

            The ware waits for the whole content; content larger than `maxBody` is refused with 413. With `streaming`, content of
            any size passes in signed chunks (`aws-chunked`), which S3 understands; its length must be known, else the answer
            is 411. With `unsignedPayload`, content passes unsigned: use it with TLS only, and with S3.

            Today's SDKs of AWS send uploads to S3 in chunks with a checksum and without signatures
            (`STREAMING-UNSIGNED-PAYLOAD-TRAILER`). Such content passes as it is, whatever the options, and only the head is
            signed; S3 accepts it over TLS. Content that a client has signed in chunks itself is refused with 400: set
            the client's option `payload_signing_enabled` to `false`. A plus sign in the query is signed as a space.
            """#,
        otherNames: ["aws", "sigv4", "awsSigning", "aws_request_signing", "awsRequestSigning"])

    public init(options: inout OptionsReader) {
        var region = ""
        var service = ""
        options.read("region", into: &region, doc: "region of the service, such as eu-central-1")
        options.read("service", into: &service, doc: "name of the service in signatures, such as s3 or execute-api")
        options.require("region", "service")
        let source = AwsSigV4.readSource(&options)
        self.init(source, region, service)
        options.read("unsignedPayload", into: &unsignedPayload, doc: "sends content without signing it")
        options.read("streaming", into: &streaming, doc: "signs content in chunks while it streams")
        options.read("headers", into: &headers, doc: "further fields that are signed")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(0) ... .mebibytes(64),
            doc: "largest content that is signed as a whole")
        for (key, text) in [("region", region), ("service", service)] where options.isGiven(key) {
            let isName =
                (1...64).contains(text.utf8.count)
                && text.utf8.allSatisfy {
                    (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2d || $0 == 0x5f
                }
            if !isName {
                options.fail(
                    at: key, "\(text.quotedForErrors) is not a name; write lower-case letters, digits and hyphens")
            }
        }
        if unsignedPayload, streaming {
            options.fail(at: "streaming", "cannot be combined with unsignedPayload; write only one of them")
        }
    }

    private static func readSource(_ options: inout OptionsReader) -> Source? {
        var id: String?
        var secret: Secret?
        var session: Secret?
        var from: Located<String>?
        var profile = "default"
        options.read("accessKeyId", into: &id, doc: "the access key's identifier")
        options.readSecret("secretAccessKey", into: &secret, doc: "the secret access key")
        options.readSecret("sessionToken", into: &session, doc: "the session token of temporary keys")
        options.read(
            "from", into: &from,
            doc: "where the keys come from: environment, container, or the path of a shared credentials file")
        options.read("profile", into: &profile, doc: "profile in the shared credentials file")
        options.requireOne(of: "accessKeyId", "from")
        options.only("accessKeyId", with: "secretAccessKey")
        options.only("secretAccessKey", "sessionToken", with: "accessKeyId")
        options.only("profile", with: "from")
        options.useless(
            "profile", with: "from", from?.value, is: "environment", "container", hint: "write the path of a file there"
        )
        if options.isDescribing { return nil }
        if let from { return readSource(from, profile, &options) }
        guard let id, let secret else { return nil }
        guard let keys = AwsKeys(id, secret, session) else {
            options.fail(at: "accessKeyId", "the keys are empty, too long, or hold a byte that AWS keys do not have")
            return nil
        }
        return .fixed(keys)
    }

    private static func readSource(
        _ from: Located<String>, _ profile: String, _ options: inout OptionsReader
    ) -> Source? {
        if let refusal = FileGate.refusal {
            options.fail(at: "from", "\(from.value.quotedForErrors) cannot be read: \(refusal)")
            return nil
        }
        switch from.value {
        case "environment":
            if let keys = AwsKeys.inEnvironment() { return .fixed(keys) }
            options.fail(
                at: "from", "the environment has no usable AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
            return nil
        case "container":
            do throws(AwsKeysFault) {
                let source = try AwsContainerSource(client: SideCaller())
                return .renewed(credential(source, "container"))
            } catch {
                options.fail(at: "from", error.reason)
                return nil
            }
        default:
            let path = FilePath.joined(from.value, writtenIn: from.location.file)
            guard let content = LoadedFile.read(path, "from", upTo: AwsFileSource.mostBytes, &options) else {
                return nil
            }
            guard AwsKeys(file: content, profile: profile) != nil else {
                options.fail(
                    at: "from", "\(path.quotedForErrors) has no usable keys for the profile \(profile.quotedForErrors)")
                return nil
            }
            return .renewed(credential(AwsFileSource(path: path, profile: profile), profile))
        }
    }

    /// Keys are renewed like any other credential: one request at a time, in the background while the old keys are valid.
    static func credential(_ source: any TokenSource, _ name: String) -> Credential {
        Credential(name: "\(AwsSigV4.name.text) \(name)", source: source, refreshBefore: .seconds(300))
    }
}
