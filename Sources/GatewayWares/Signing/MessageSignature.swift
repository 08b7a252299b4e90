public import HttpWare

/// How a message is signed. RFC 9421 §3.3.
public enum SignatureAlgorithm: String, OptionWord {
    case rsaPssSha512 = "rsa-pss-sha512"
    case rsaSha256 = "rsa-v1_5-sha256"
    case hmacSha256 = "hmac-sha256"
    case ecdsaP256 = "ecdsa-p256-sha256"
    case ecdsaP384 = "ecdsa-p384-sha384"
    case ed25519

    /// The corresponding algorithm of tokens.
    var way: VerifyingKey.Algorithm {
        switch self {
        case .rsaPssSha512: .ps512
        case .rsaSha256: .rs256
        case .hmacSha256: .hs256
        case .ecdsaP256: .es256
        case .ecdsaP384: .es384
        case .ed25519: .edDSA
        }
    }
}

/// A member of `Signature-Input`: the components that a signature covers, and its parameters. RFC 9421 §4.1.
struct SignatureInput {
    var components: [SignatureComponent]
    var parameters: StructuredParameters

    /// The field that lists what the signatures cover.
    static let field: FieldName = "Signature-Input"
    /// The field with the signatures.
    static let signatureField: FieldName = "Signature"

    init(_ components: [SignatureComponent], _ parameters: StructuredParameters) {
        self.components = components
        self.parameters = parameters
    }

    /// The most components that a signature covers: each is looked up in the message.
    static let mostComponents = 32

    /// `nil` if a component is unknown, or is covered twice, or if there are too many. RFC 9421 §2.5.
    init?(_ member: StructuredMember) {
        guard case .list(let items, let parameters) = member, items.count <= SignatureInput.mostComponents else {
            return nil
        }
        var components: [SignatureComponent] = []
        for (item, itemParameters) in items {
            guard let component = SignatureComponent(item, itemParameters), !components.contains(component) else {
                return nil
            }
            components.append(component)
        }
        self.init(components, parameters)
    }

    /// The value of a parameter; `nil` if it is missing.
    func parameter(_ name: String) -> StructuredItem? { parameters.first { $0.name == name }?.value }

    /// The member as it stands in the field.
    var text: String {
        "(\(components.map(\.identifier).joined(separator: " ")))\(StructuredText.text(parameters))"
    }

    /// The most bytes that a signature covers, apart from the content: components may repeat large fields.
    static let mostBytes = 64 * 1024

    /// The most bytes of dictionaries that are read for the members that a signature covers.
    private static let mostRead = 256 * 1024

    /// The bytes that are signed; `nil` if the request lacks a component, or there are too many bytes. RFC 9421 §2.5.
    func base(of request: SignedRequest) -> [UInt8]? {
        var base: [UInt8] = []
        base.reserveCapacity(512)
        var read = 0
        for component in components {
            if component.member != nil, let name = FieldName(component.name) {
                read += request.fields.rawValues(of: name).reduce(0) { $0 + $1.count }
                guard read <= SignatureInput.mostRead else { return nil }
            }
            guard let value = request.value(of: component) else { return nil }
            base += component.identifier.utf8
            base += ": ".utf8
            base += value
            base.append(0x0a)
            guard base.count <= SignatureInput.mostBytes else { return nil }
        }
        base += "\"@signature-params\": ".utf8
        base += text.utf8
        return base
    }
}

/// Digests of content. RFC 9530.
enum ContentDigest {
    static let field: FieldName = "Content-Digest"

    /// A digest algorithm that RFC 9530 §5 calls active.
    enum Algorithm: String, OptionWord {
        case sha256 = "sha-256"
        case sha512 = "sha-512"

        func digest(of content: [UInt8]) -> [UInt8] {
            content.withUnsafeBytes { self == .sha256 ? Digest256(of: $0).bytes : Digest256.sha512(of: $0) }
        }
    }

    /// The value of the field for this content.
    static func text(of content: [UInt8], by algorithm: Algorithm) -> String {
        "\(algorithm.rawValue)=\(StructuredText.text(.bytes(algorithm.digest(of: content))))"
    }

    /// Whether the field has a digest by a known algorithm, and all such digests match the content.
    static func matches(_ value: [UInt8], _ content: [UInt8]) -> Bool {
        guard let members = try? StructuredReader.dictionary(value) else { return false }
        var isFound = false
        for (name, member) in members {
            guard let algorithm = Algorithm(rawValue: name) else { continue }
            guard case .item(let item, _) = member, let digest = item.bytes,
                ConstantTime.equal(digest, algorithm.digest(of: content))
            else { return false }
            isFound = true
        }
        return isFound
    }
}
