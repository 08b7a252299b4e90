/// The group of a key exchange of TLS, as one byte: there is one in each record.
enum KeyExchange: UInt8, CaseIterable {
    case x25519
    case secp256r1
    case secp384r1
    /// X25519 and ML-KEM together, which also withstands quantum computers.
    case hybrid
    case other

    /// The group with this name by IANA's registry.
    init(_ name: String) {
        self = KeyExchange.allCases.first { $0.name.lowercased() == name.lowercased() } ?? .other
    }

    /// The name by IANA's registry.
    var name: String {
        switch self {
        case .x25519: "x25519"
        case .secp256r1: "secp256r1"
        case .secp384r1: "secp384r1"
        case .hybrid: "X25519MLKEM768"
        case .other: "other"
        }
    }
}
