@testable import HttpWare
@testable import GatewayWares

/// Values that a client may write into `Signature-Input`, `Signature` and `Content-Digest`, and into a target that is signed for AWS; files and
/// answers of endpoints about AWS keys.
extension Fuzzing {
    private static let verify: Verify = {
        var verify = Verify()
        guard let key = VerifyingKey(secret: Array("a secret that no input holds, of 32 bytes".utf8)) else {
            fatalError("not a secret")
        }
        verify.accept("k", key, by: .hmacSha256)
        return verify
    }()

    /// Reads the input as a structured field: what is read is written so that it reads as the same. Then as the fields of a signed
    /// request: without the key, no client gets in.
    public static func messageSignature(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, bytes) = input(start, count) else { return }
        awsRequest(bytes)
        if let members = try? StructuredReader.dictionary(bytes) {
            let text = written(members)
            guard let again = try? StructuredReader.dictionary(Array(text.utf8)) else {
                fatalError("our field is refused: \(text)")
            }
            require(written(again) == text, "another field: \(text)")
            let directives = try? StructuredReader.dictionary(bytes, for: .directives)
            require(directives.map(written) == text, "another field as directives: \(text)")
            for (_, member) in members {
                guard let input = SignatureInput(member) else { continue }
                require(Set(input.components).count == input.components.count, "covered twice")
                for component in input.components {
                    require((try? SignatureComponent(optionText: component.optionText)) == component, "\(component)")
                }
            }
        }
        let lines = bytes.split(separator: 0x00, maxSplits: 3, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        let target = lines.count > 3 && (try? HttpRequest(.post, lines[3])) != nil ? lines[3] : "/a?b=c&b=%20d&e"
        guard var request = try? HttpRequest(.post, target, content: choice & 1 == 0 ? .none : .text("content")) else {
            return
        }
        let names: [FieldName] = ["Signature-Input", "Signature", "Content-Digest"]
        for (name, line) in zip(names, lines) { try? request.fields.append(name, line) }
        let now = WallTime(seconds: 1_618_884_473)
        let signed = SignedRequest(
            sent: request, as: UpstreamNames(authority: "example.com", basePath: "", isSecure: choice & 2 == 0))
        let keyId = try? verify.verify(signed, content: request.content, at: now).keyId
        require(keyId == nil, "accepted without the key")
    }

    /// A target in the canonical form is its own canonical form; keys have no byte that a field cannot carry.
    private static func awsRequest(_ bytes: [UInt8]) {
        func canonical(_ body: (inout [UInt8]) -> Void) -> [UInt8] {
            var text: [UInt8] = []
            body(&text)
            require(text.allSatisfy { (0x21...0x7e).contains($0) }, "a byte that is not printed")
            return text
        }
        let query = canonical { AwsCanonical.append(query: bytes, to: &$0) }
        require(canonical { AwsCanonical.append(query: query, to: &$0) } == query, "another query")
        let path = canonical { AwsCanonical.append(path: bytes, isPlain: true, to: &$0) }
        require(canonical { AwsCanonical.append(path: path, isPlain: true, to: &$0) } == path, "another path")
        _ = canonical { AwsCanonical.append(path: bytes, isPlain: false, to: &$0) }
        let response = HttpResponse(.ok, content: .bytes(bytes))
        _ = try? AwsContainerSource.token(in: response, at: WallTime(seconds: 1_618_884_473))
        if let keys = AwsKeys(file: bytes, profile: "default") {
            require(AwsKeys(packed: keys.packed) == keys, "other keys")
        }
    }

    private static func written(_ members: [(name: String, value: StructuredMember)]) -> String {
        members.map { name, member in
            let text = StructuredText.text(member)
            return text.isEmpty || text.hasPrefix(";") ? name + text : "\(name)=\(text)"
        }.joined(separator: ", ")
    }
}
