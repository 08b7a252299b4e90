#if HTTPWARE_BENCH
    import Credentials
    import FoundationEssentials
    import HttpWare

    /// The tokens and keys that the tests of the module use, made by others' libraries.
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
                // The token and the key are files of this repository, and the clock is fixed: no input reaches this trap. A token
                // that is refused would be measured as one that is verified.
                do { keep(try verifier.verify(token, keys: keys, at: now)) } catch { fatalError("\(error)") }
            }
        }
    }

    let tokenBenchmarks: [Benchmark] = [
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
