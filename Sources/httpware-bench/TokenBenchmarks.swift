#if HTTPWARE_BENCH
    import Authentication
    import Credentials
    import FoundationEssentials
    import HttpWare
    @testable import GatewayWares

    /// The tokens and keys of the module's tests, which were made by other libraries.
    private func fixture(_ name: String) -> String {
        let path =
            #filePath.replacing("Sources/httpware-bench/TokenBenchmarks.swift", with: "")
            + "Tests/CredentialsTests/Fixtures/\(name)"
        return (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }

    private func token(_ name: String) -> [UInt8] {
        let line = fixture("tokens.txt").split(separator: "\n").first { $0.hasPrefix("good|\(name)|") }
        return Array((line?.split(separator: "|").last ?? "").utf8)
    }

    private func verified(_ algorithm: VerifyingKey.Algorithm, _ token: [UInt8], _ key: VerifyingKey?) -> Benchmark {
        Benchmark(name: "a token of \(algorithm.rawValue) is verified") { times in
            guard let key else { return }
            var verifier = JwtVerifier()
            verifier.algorithms = [algorithm]
            let keys = JsonWebKeySet([JsonWebKey(key)])
            let now = WallTime(seconds: 1_767_225_600)
            for _ in 0..<times {
                // The token and the key are files of this repository, and the clock is fixed, so no input reaches this trap. It
                // makes sure that a refused token is not measured as a verified one.
                do { keep(try verifier.verify(token, keys: keys, at: now)) } catch { fatalError("\(error)") }
            }
        }
    }

    /// The work of `awsSigV4` for a request with 1 KiB of content, without the exchange.
    private let signedByAws = Benchmark(name: "a request of 1 KiB is signed with AWS Signature Version 4") { times in
        let signer = AwsSigner(region: "eu-central-1", service: "execute-api")
        let wall = WallTime(seconds: 1_767_225_600)
        guard let keys = AwsKeys("AKIDEXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), nil),
            var received = try? HttpRequest(.post, "https://api.example.com/orders/7?page=2")
        else { return }
        for (name, value) in [
            ("Host", "api.example.com"), ("Accept", "*/*"), ("Content-Type", "application/json"),
            ("Content-Length", "1024"), ("User-Agent", "bench/1.0"), ("Accept-Encoding", "gzip, br"),
        ] {
            if let name = FieldName(name) { try? received.fields.set(name, to: value) }
        }
        let content = [UInt8](repeating: 0x61, count: 1024)
        for _ in 0..<times {
            var request = received
            let time = AwsTime(wall)
            guard let key = signer.key(on: time, number: 0, { keys }) else { return }
            var payload: [UInt8] = []
            payload.reserveCapacity(64)
            content.withUnsafeBytes { Digest256(of: $0) }.appendHex(to: &payload)
            try? request.fields.set("X-Amz-Date", toRaw: time.text)
            let target = request.upstreamTargetBytes.split(separator: 0x3f, maxSplits: 1)
            let signed = AwsSigner.Request(
                method: request.method.name, path: Array(target[0]), query: Array(target[1]), host: "api.example.com",
                payload: payload)
            let authorization = signer.sign(signed, fields: request.fields, at: time, with: key).authorization
            try? request.fields.set(.authorization, toRaw: authorization)
            keep(request.fields.count)
        }
    }

    let tokenBenchmarks: [Benchmark] = [
        signedByAws,
        Benchmark(name: "content of 1 KiB is hashed") { times in
            let content = [UInt8](repeating: 0x61, count: 1024)
            for _ in 0..<times { content.withUnsafeBytes { keep(Digest256(of: $0)) } }
        },
        verified(.rs256, token("RS256 by PyJWT"), VerifyingKey(pem: fixture("rsa-1.pem"))),
        verified(.es256, token("ES256 by PyJWT"), VerifyingKey(pem: fixture("p256-1.pem"))),
        verified(
            .hs256, Array((fixture("hs256.txt").split(separator: "\n").first ?? "").utf8),
            VerifyingKey(secret: Array("a secret of the tests, thirty-two bytes and more".utf8))),
        Benchmark(name: "a token's claims are read as JSON") { times in
            let parts = token("RS256 by PyJWT").split(separator: 0x2e)
            guard parts.count == 3, let claims = Base64.decodeUrl(parts[1]) else { return }
            for _ in 0..<times { keep(try? JsonValue(claims)) }
        },
        Benchmark(name: "a signature of RS256 is checked") { times in
            let text = token("RS256 by PyJWT")
            guard let key = VerifyingKey(pem: fixture("rsa-1.pem")), let dot = text.lastIndex(of: 0x2e),
                let signature = Base64.decodeUrl(text[(dot + 1)...])
            else { return }
            for _ in 0..<times {
                text.withUnsafeBytes { text in
                    signature.withUnsafeBytes {
                        keep(key.isSignature($0, of: UnsafeRawBufferPointer(rebasing: text[..<dot]), by: .rs256))
                    }
                }
            }
        },
    ]
#endif
