/// The token that keeps a client with its share of a route, or with its endpoint of a service: the place and the expiry, sealed for the
/// route or the service.
///
/// A token identifies a place, but no client: all clients that came to a place in the same second have the same token.
struct StickyToken: Equatable {
    /// A number for the name of the share's service, or of the endpoint.
    let share: UInt64
    /// The expiry, in seconds since 1970.
    let end: UInt64

    /// The length of a sealed token, in characters.
    static let length = 59

    /// The number of a service's name.
    static func number(of service: String) -> UInt64 {
        var hash = StableHash()
        hash.add(service)
        return hash.value
    }

    /// The keys that seal the tokens of one route, or of one service.
    struct Seal: Sendable {
        /// The first key seals; tokens of any key can be opened.
        let keys: [SealingKey]
        private let context: [UInt8]

        /// Makes a seal for the route with that name: tokens of another route cannot be opened.
        init(keys: [SealingKey], route: String) {
            self.keys = keys
            context = Array("sticky \(route)".utf8)
        }

        /// Makes a seal for the endpoints of the service with that name.
        init(keys: [SealingKey], service: String) {
            self.keys = keys
            context = Array("endpoint of \(service)".utf8)
        }

        /// The token as text: base64url without padding; `nil` if memory or randomness is missing.
        func text(of token: StickyToken) -> String? {
            let parts = (token.share.littleEndian, token.end.littleEndian)
            guard let sealed = keys.first?.seal(withUnsafeBytes(of: parts) { Array($0) }, context: context) else {
                return nil
            }
            return Base64.encodeUrl(sealed)
        }

        /// Reads a text from a client; `nil` unless one of the keys sealed it for this route.
        func token(in text: UnsafeRawBufferPointer) -> StickyToken? {
            guard text.count == StickyToken.length, let sealed = Base64.decodeUrl(text) else { return nil }
            for key in keys {
                guard let bytes = key.open(sealed, context: context), bytes.count == 16 else { continue }
                return bytes.withUnsafeBytes {
                    StickyToken(
                        share: UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                        end: UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
                }
            }
            return nil
        }
    }
}
