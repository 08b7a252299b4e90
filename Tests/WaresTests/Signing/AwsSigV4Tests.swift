import Credentials
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite struct AwsSigV4Tests {
    private static let options: ConfigNode = [
        "region": "us-east-1", "service": "s3", "accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "secret",
    ]

    private func exchange(_ more: ConfigNode = [:]) throws -> TestExchange {
        let entries = (Self.options.entries ?? []) + (more.entries ?? [])
        return try TestExchange(AwsSigV4.self, options: ConfigNode(.map(entries)))
    }

    /// The signature of what arrived, made again from it by the same keys.
    private func signature(of request: HttpRequest, payload: String, service: String = "s3") throws -> String {
        let signer = AwsSigner(region: "us-east-1", service: service)
        let time = AwsTime(WallTime(seconds: 1_767_225_600))
        let keys = AwsKeys("AKIDEXAMPLE", Secret("secret"), nil)
        let key = try #require(signer.key(on: time, number: 0) { keys })
        let target = request.upstreamTargetBytes.split(separator: 0x3f, maxSplits: 1).map(Array.init)
        let signed = signer.sign(
            AwsSigner.Request(
                method: request.method.name, path: target[0], query: target.count > 1 ? target[1] : nil,
                host: request.fields[.host] ?? request.authority?.description ?? "", payload: Array(payload.utf8)),
            fields: request.fields, at: time, with: key)
        return String(decoding: signed.authorization, as: UTF8.self)
    }

    @Test func `a request with content is signed, and its own credentials are removed`() async throws {
        let exchange = try exchange()
        var request = try HttpRequest(.put, "/a%20b?x=2&x=1", content: .text("content"))
        try request.fields.set(.authorization, to: "Bearer client")
        try request.fields.set("X-Amz-Security-Token", to: "client")
        #expect(try await exchange.send(request).status == .ok)
        let sent = try #require(exchange.upstream.requests.first)
        let digest = Array("content".utf8).withUnsafeBytes { Digest256(of: $0) }.hex
        #expect(sent.fields["X-Amz-Content-Sha256"] == digest)
        #expect(sent.fields["X-Amz-Date"] == "20260101T000000Z")
        #expect(!sent.fields.contains("X-Amz-Security-Token"))
        #expect(try sent.fields[.authorization] == signature(of: sent, payload: digest))
    }

    @Test func `with unsignedPayload content streams unsigned`() async throws {
        let exchange = try exchange(["unsignedPayload": "true", "maxBody": "0B"])
        _ = try await exchange.send(HttpRequest(.put, "/a", content: .text("content")))
        let sent = try #require(exchange.upstream.requests.first)
        #expect(sent.fields["X-Amz-Content-Sha256"] == "UNSIGNED-PAYLOAD")
        #expect(try sent.fields[.authorization] == signature(of: sent, payload: "UNSIGNED-PAYLOAD"))
        #expect(sent.content.bytes == Array("content".utf8))
    }

    @Test func `content over maxBody is refused with 413`() async throws {
        let exchange = try exchange(["maxBody": "6B"])
        #expect(try await exchange.send(HttpRequest(.put, "/a", content: .text("content"))).status == .contentTooLarge)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(
        arguments: ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"],
        ["", "unsignedPayload", "streaming"])
    func `chunks that the client has signed are refused, and the client's option is named`(
        word: String, option: String
    ) async throws {
        var request = try HttpRequest(.put, "/a", content: .text("content"))
        try request.fields.set("X-Amz-Content-Sha256", to: word)
        let exchange = option.isEmpty ? try exchange() : try exchange([option: "true"])
        let response = try await exchange.send(request)
        #expect(response.status == .badRequest)
        #expect(response.content.text?.contains("payload_signing_enabled") == true)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: ["", "unsignedPayload", "streaming"])
    func `chunks without signatures pass with a new signature of the head, whatever the options`(
        option: String
    ) async throws {
        let word = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
        // Longer than `maxBody`: it is not held.
        let data = String(repeating: "a", count: 2 << 20)
        let framed = "200000\r\n\(data)\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"
        for codings in ["aws-chunked", "aws-chunked,gzip"] {
            var request = try HttpRequest(.put, "/a", content: .text(framed))
            try request.fields.set("X-Amz-Content-Sha256", to: word)
            try request.fields.set(.contentEncoding, to: codings)
            try request.fields.set("X-Amz-Decoded-Content-Length", to: "2097152")
            let exchange = option.isEmpty ? try exchange() : try exchange([option: "true"])
            #expect(try await exchange.send(request).status == .ok)
            let sent = try #require(exchange.upstream.requests.first)
            #expect(sent.fields["X-Amz-Content-Sha256"] == word)
            #expect(sent.fields[.contentEncoding] == codings)
            #expect(sent.content.bytes == Array(framed.utf8))
            #expect(try sent.fields[.authorization] == signature(of: sent, payload: word))
        }
    }

    @Test func `a TRACE request is not signed`() async throws {
        let exchange = try exchange()
        _ = try await exchange.send(HttpRequest(.trace, "/"))
        #expect(exchange.upstream.requests.first?.fields.contains(.authorization) != true)
    }

    @Test(
        arguments: [
            ["region": "us-east-1", "service": "s3"], ["region": "us-east-1", "service": "s3", "accessKeyId": "A"],
            ["region": "US", "service": "s3", "accessKeyId": "A", "secretAccessKey": "B"],
            ["region": "a", "service": "s3", "accessKeyId": "A B", "secretAccessKey": "B"],
            ["region": "a", "service": "s3", "from": "environment", "secretAccessKey": "B"],
            ["region": "a", "service": "s3", "from": "/nowhere/credentials"],
            [
                "region": "a", "service": "s3", "accessKeyId": "A", "secretAccessKey": "B", "streaming": "true",
                "unsignedPayload": "true",
            ],
        ] as [ConfigNode])
    func `options that cannot work are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(AwsSigV4.self, options: options) }
    }

    // MARK: Keys

    @Test func `the keys of a profile are read from a shared credentials file`() {
        let text = """
            # comment
            [default]
            aws_access_key_id = A
            aws_secret_access_key=B/+=
            [ gateway ]
            ; another
            AWS_ACCESS_KEY_ID=C
            aws_secret_access_key  =  D
            aws_session_token = E==
            [empty]
            aws_access_key_id =
            aws_secret_access_key = F
            """
        let content = Array(text.utf8)
        #expect(AwsKeys(file: content, profile: "default") == AwsKeys("A", Secret("B/+="), nil))
        #expect(AwsKeys(file: content, profile: "gateway") == AwsKeys("C", Secret("D"), Secret("E==")))
        #expect(AwsKeys(file: content, profile: "empty") == nil)
        #expect(AwsKeys(file: content, profile: "other") == nil)
    }

    @Test func `keys come from the environment`() {
        let variables = ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B", "AWS_SESSION_TOKEN": "C"]
        #expect(AwsKeys.inEnvironment { variables[$0] } == AwsKeys("A", Secret("B"), Secret("C")))
        #expect(
            AwsKeys.inEnvironment { $0 == "AWS_SESSION_TOKEN" ? nil : variables[$0] } == AwsKeys("A", Secret("B"), nil))
        #expect(AwsKeys.inEnvironment { _ in nil } == nil)
    }

    @Test func `keys survive being kept as one text`() throws {
        let keys = try #require(AwsKeys("A", Secret("B/+="), Secret("C==")))
        #expect(AwsKeys(packed: keys.packed) == keys)
        #expect(AwsKeys(packed: Secret("A")) == nil)
        #expect("\(keys)".contains("B/+=") == false)
    }

    @Test func `keys of a file are renewed while requests go on`() async throws {
        let file = try CredentialFile("[default]\naws_access_key_id=FIRST\naws_secret_access_key=x\n")
        let entries =
            (["region": "us-east-1", "service": "s3"] as ConfigNode).entries ?? []
        let exchange = try TestExchange(
            AwsSigV4.self,
            options: ConfigNode(.map(entries + [ConfigNode.Entry(key: "from", location: .code, value: file.option)])))
        #expect(try await exchange.send(.get("/")).status == .ok)
        try file.write("[default]\naws_access_key_id=SECOND\naws_secret_access_key=y\n")
        await exchange.advance(by: .seconds(299))
        _ = try await exchange.send(.get("/"))
        await exchange.advance(by: .seconds(2))
        // It is due: this one continues with the former keys, later ones have the new keys.
        var users: [String] = []
        for _ in 0..<200 where users.last?.contains("=SECOND/") != true {
            _ = try await exchange.send(.get("/"))
            users.append(exchange.upstream.requests.last?.fields[.authorization] ?? "")
            await exchange.advance(by: .milliseconds(1))
            await Task.yield()
        }
        #expect(exchange.upstream.requests[0].fields[.authorization]?.contains("=FIRST/") == true)
        #expect(exchange.upstream.requests[1].fields[.authorization]?.contains("=FIRST/") == true)
        #expect(users.last?.contains("=SECOND/") == true)
    }

    private static let endpoint = "http://169.254.170.2/v2/credentials/1"

    private func container(_ calls: ScriptedCalls) throws -> TestExchange {
        let variables = [
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "pass",
        ]
        let source = try AwsContainerSource(client: calls) { variables[$0] }
        return try TestExchange([AwsSigV4(.renewed(AwsSigV4.credential(source, "test")), "us-east-1", "s3")])
    }

    @Test func `keys of a container are requested once for all requests, and again before they expire`() async throws {
        let calls = ScriptedCalls()
        let body = { (id: String, end: String) in
            ScriptedCalls.json(
                "{\"AccessKeyId\":\"\(id)\",\"SecretAccessKey\":\"s\",\"Token\":\"t\(id)\",\"Expiration\":\"\(end)\"}"
                    .utf8)
        }
        calls.script(Self.endpoint, .hold, body("SECOND", "2026-01-01T12:00:00Z"))
        let exchange = try container(calls)
        let (first, second) = (await exchange.start(.get("/1")), await exchange.start(.get("/2")))
        #expect(calls.requests.count == 1)
        #expect(calls.requests.first?.fields[.authorization] == "pass")
        calls.release(with: body("FIRST", "2026-01-01T01:00:00Z"))
        #expect(try await first.response().status == .ok)
        #expect(try await second.response().status == .ok)
        for request in exchange.upstream.requests {
            #expect(request.fields[.authorization]?.contains("Credential=FIRST/20260101/us-east-1/s3/") == true)
            #expect(request.fields["X-Amz-Security-Token"] == "tFIRST")
        }
        await exchange.advance(by: .seconds(3301))
        _ = try await exchange.send(.get("/3"))
        await exchange.advance(by: .milliseconds(1))
        _ = try await exchange.send(.get("/4"))
        #expect(calls.requests.count == 2)
        #expect(exchange.upstream.requests.last?.fields["X-Amz-Security-Token"] == "tSECOND")
    }

    @Test func `without keys the request is refused with 503 and never sent`() async throws {
        let calls = ScriptedCalls()
        calls.script(Self.endpoint, .respond(HttpResponse(.internalServerError)))
        let exchange = try container(calls)
        let pending = await exchange.start(.get("/"))
        // It is tried again twice, after a pause each.
        for _ in 0..<4 { await exchange.advance(by: .seconds(2)) }
        let response = try await pending.response()
        #expect(response.status == .serviceUnavailable)
        #expect(exchange.upstream.requests.isEmpty)
        #expect(response.content.bytes.map { String(decoding: $0, as: UTF8.self) }?.contains("status 500") == true)
    }

    @Test(arguments: [
        "[]", "{}", #"{"AccessKeyId":"a b","SecretAccessKey":"s"}"#,
        #"{"AccessKeyId":"a","SecretAccessKey":"s","Expiration":"yesterday"}"#,
        #"{"AccessKeyId":"a","SecretAccessKey":"s","Expiration":"2025-12-31T23:59:59Z"}"#,
    ])
    func `a response of the container endpoint without usable keys is refused`(text: String) {
        let response = HttpResponse(.ok, content: .text(text))
        #expect(throws: AwsKeysFault.self) {
            try AwsContainerSource.token(in: response, at: WallTime(seconds: 1_767_225_600))
        }
    }

    @Test(arguments: [
        "http://192.0.2.1/x", "http://localhost.example/x", "http://127.example.com/", "ftp://x/", "/x", "",
    ])
    func `keys are never requested in clear text from elsewhere`(url: String) {
        #expect(throws: AwsKeysFault.self) {
            try AwsContainerSource(client: ScriptedCalls()) { $0 == "AWS_CONTAINER_CREDENTIALS_FULL_URI" ? url : nil }
        }
    }
}
