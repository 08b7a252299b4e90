import COpenSSL
import COpenSSLShims
import Glibc

/// The reason why TLS cannot be set up, or failed on a connection.
public struct TlsFault: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kind of a fault.
    public enum Kind: Sendable, Equatable {
        /// The content of a file is invalid.
        case material
        /// The peer's certificate is untrusted, expired, not yet valid, for another name, or missing.
        case certificate
        /// The peer ended the connection with an alert. RFC 8446 §6.2.
        case alert
        /// The peer closed the connection without an alert: its data may be incomplete. RFC 8446 §6.1.
        case truncated
        /// The peer speaks unencrypted HTTP.
        case plainHttp
        /// The peer does not speak TLS, or no version or cipher that we support.
        case protocolError
        /// The connection broke, with this `errno`.
        case broken(Int32)
    }

    /// The kind of the fault.
    public let kind: Kind
    /// The details for people: starts in lower case, ends without a full stop.
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

    /// The fault of the OpenSSL call that just failed on this thread; `code` is the call's `errno`.
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

    /// A fault of a file, with the details that OpenSSL queued.
    static func material(_ problem: String) -> TlsFault {
        let error = ERR_peek_last_error()
        let detail = error == 0 ? "" : ": " + text(ERR_reason_error_string(error))
        ERR_clear_error()
        return TlsFault(.material, problem + detail)
    }

    /// OpenSSL's reasons above this number (`SSL_AD_REASON_OFFSET`) are alerts of the peer.
    private static let alertOffset: Int32 = 1000

    private static func text(_ chars: UnsafePointer<CChar>?) -> String {
        chars.map { String(cString: $0).lowercased() } ?? "unknown error"
    }
}
