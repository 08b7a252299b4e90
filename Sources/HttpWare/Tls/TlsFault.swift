import COpenSSL
import COpenSSLShims
import Glibc

/// Why TLS cannot be set up, or what went wrong on a connection.
public struct TlsFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// What sort of fault it is.
    public enum Kind: Sendable, Equatable {
        /// A file holds not what it should.
        case material
        /// The peer's certificate is not trusted, not in force, or another's; or it showed none.
        case certificate
        /// The peer ended the connection with an alert. RFC 8446 §6.2.
        case alert
        /// The peer closed the connection without saying so: what it sent may be cut off. RFC 8446 §6.1.
        case truncated
        /// The peer speaks HTTP in clear text.
        case plainHttp
        /// The peer does not speak TLS, or none that we speak.
        case protocolError
        /// The connection broke, with this `errno`.
        case broken(Int32)
    }

    /// What sort of fault it is.
    public let kind: Kind
    /// What was seen, for people: starts in lower case, ends without a full stop.
    public let reason: String
    /// The number of the peer's alert; `nil` for any other fault. RFC 8446 §6.
    public let alert: UInt8?

    /// The reason.
    public var description: String { reason }

    init(_ kind: Kind, _ reason: String, alert: UInt8? = nil) {
        self.kind = kind
        self.reason = reason
        self.alert = alert
    }

    /// What OpenSSL says about the call that just failed on this thread; the call's `errno` is `code`.
    static func taken(of session: OpaquePointer, isBroken: Bool, code: Int32) -> TlsFault {
        defer { ERR_clear_error() }
        let error = ERR_peek_error()
        if isBroken || error == 0 {
            return code == 0
                ? TlsFault(.truncated, "the peer closed the connection")
                : TlsFault(.broken(code), SystemError.text(of: code).lowercased())
        }
        var isSsl: Int32 = 0
        let reason = copenssl_reason(error, &isSsl)
        if isSsl == 1, reason == SSL_R_UNEXPECTED_EOF_WHILE_READING {
            return TlsFault(.truncated, "the peer closed the connection")
        }
        if isSsl == 1, reason == SSL_R_CERTIFICATE_VERIFY_FAILED {
            let result = SSL_get_verify_result(session)
            if result == X509_V_ERR_APPLICATION_VERIFICATION {
                return TlsFault(.certificate, "the server has none of the pinned keys")
            }
            return TlsFault(.certificate, text(X509_verify_cert_error_string(result)))
        }
        if isSsl == 1, reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE {
            return TlsFault(.certificate, "the peer sent no certificate")
        }
        if isSsl == 1, reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST {
            return TlsFault(.plainHttp, "the peer speaks HTTP without TLS")
        }
        let isAlert = isSsl == 1 && reason > Self.alertOffset && reason < Self.alertOffset + 256
        return TlsFault(
            isAlert ? .alert : .protocolError, text(ERR_reason_error_string(error)),
            alert: isAlert ? UInt8(reason - alertOffset) : nil)
    }

    /// Something in a file is wrong; what OpenSSL queued says more.
    static func material(_ problem: String) -> TlsFault {
        let error = ERR_peek_last_error()
        let detail = error == 0 ? "" : ": " + text(ERR_reason_error_string(error))
        ERR_clear_error()
        return TlsFault(.material, problem + detail)
    }

    /// Reasons that are alerts of the peer begin behind this number (`SSL_AD_REASON_OFFSET`).
    private static let alertOffset: Int32 = 1000

    private static func text(_ chars: UnsafePointer<CChar>?) -> String {
        chars.map { String(cString: $0).lowercased() } ?? "unknown error"
    }
}
