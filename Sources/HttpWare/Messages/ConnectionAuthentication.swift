/// The authentication schemes that authenticate a connection instead of a request: each later request on the connection counts as
/// the same user's, without credentials of its own.
///
/// HTTP does not allow this, because an intermediary may send requests of several clients on one connection (RFC 9110 §3.3). So a
/// connection on which such a scheme may be in use belongs to one client. RFC 4559 §6.
enum ConnectionAuthentication {
    private static let schemes = ["ntlm", "negotiate", "nego2", "kerberos"].map { Array($0.utf8) }

    /// Whether the credentials, the value of `Authorization`, are of such a scheme: their first word names it. RFC 9110 §11.4.
    static func isUsed(by credentials: UnsafeRawBufferPointer) -> Bool {
        var position = 0
        while position < credentials.count, isGap(credentials[position]) { position += 1 }
        return isScheme(word(of: credentials, from: position))
    }

    /// Whether one of the challenges, in the value of `WWW-Authenticate`, may be for such a scheme. RFC 9110 §11.6.1.
    ///
    /// Any word that names a scheme counts, wherever it stands: clients read malformed challenges in different ways.
    static func isOffered(by challenges: UnsafeRawBufferPointer) -> Bool {
        var position = 0
        while position < challenges.count {
            guard !isGap(challenges[position]) else {
                position += 1
                continue
            }
            let word = word(of: challenges, from: position)
            if isScheme(word) { return true }
            position += word.count
        }
        return false
    }

    private static func isGap(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x2c }

    private static func word(of text: UnsafeRawBufferPointer, from start: Int) -> UnsafeRawBufferPointer {
        var end = start
        while end < text.count, !isGap(text[end]) { end += 1 }
        return UnsafeRawBufferPointer(rebasing: text[start..<end])
    }

    /// Schemes are compared without case. RFC 9110 §11.1.
    private static func isScheme(_ word: UnsafeRawBufferPointer) -> Bool {
        schemes.contains { $0.count == word.count && zip($0, word).allSatisfy { $0 == ByteClass.lower($1) } }
    }
}

extension HttpFields {
    /// Whether a credential among the fields authenticates the connection that carries them.
    @inline(__always)
    var authenticateConnection: Bool { present & HttpFields.credentials != 0 && holdConnectionCredentials }

    private static let credentials = KnownField.authorization.bit | KnownField.proxyAuthorization.bit

    private var holdConnectionCredentials: Bool {
        bytes.withUnsafeBytes { bytes in
            lines.contains {
                !$0.isRemoved && ($0.known == .authorization || $0.known == .proxyAuthorization)
                    && ConnectionAuthentication.isUsed(by: UnsafeRawBufferPointer(rebasing: bytes[$0.value]))
            }
        }
    }

    /// Whether a challenge among the fields, also in a line for one hop, may be for authentication of the connection.
    fileprivate var offerConnectionAuthentication: Bool {
        bytes.withUnsafeBytes { bytes in
            lines.contains {
                ($0.known == .wwwAuthenticate || $0.known == .proxyAuthenticate)
                    && ConnectionAuthentication.isOffered(by: UnsafeRawBufferPointer(rebasing: bytes[$0.value]))
            }
        }
    }
}

extension HttpResponse {
    /// Whether it asks the client to authenticate the connection.
    @inline(__always)
    var asksToAuthenticateConnection: Bool {
        (status == .unauthorized || status == .proxyAuthenticationRequired) && fields.offerConnectionAuthentication
    }
}
