/// A response's status code, by definition 100 to 599; others from an origin server are forwarded. RFC 9110 §15.
public struct HttpStatus: Hashable, Sendable, Comparable {
    /// The three digits as a number, 100 … 999.
    public let code: Int

    /// Makes a status; `nil` unless the code has three digits and is at least 100.
    public init?(_ code: Int) {
        guard (100...999).contains(code) else { return nil }
        self.code = code
    }

    /// Makes a status from a verified code of three digits.
    init(verified code: Int) { self.code = code }

    public static func < (left: HttpStatus, right: HttpStatus) -> Bool { left.code < right.code }

    public static let `continue` = HttpStatus(verified: 100)
    public static let switchingProtocols = HttpStatus(verified: 101)
    public static let earlyHints = HttpStatus(verified: 103)
    public static let ok = HttpStatus(verified: 200)
    public static let created = HttpStatus(verified: 201)
    public static let accepted = HttpStatus(verified: 202)
    public static let noContent = HttpStatus(verified: 204)
    public static let resetContent = HttpStatus(verified: 205)
    public static let partialContent = HttpStatus(verified: 206)
    public static let movedPermanently = HttpStatus(verified: 301)
    public static let found = HttpStatus(verified: 302)
    public static let seeOther = HttpStatus(verified: 303)
    public static let notModified = HttpStatus(verified: 304)
    public static let temporaryRedirect = HttpStatus(verified: 307)
    public static let permanentRedirect = HttpStatus(verified: 308)
    public static let badRequest = HttpStatus(verified: 400)
    public static let unauthorized = HttpStatus(verified: 401)
    public static let forbidden = HttpStatus(verified: 403)
    public static let notFound = HttpStatus(verified: 404)
    public static let methodNotAllowed = HttpStatus(verified: 405)
    public static let notAcceptable = HttpStatus(verified: 406)
    public static let proxyAuthenticationRequired = HttpStatus(verified: 407)
    public static let requestTimeout = HttpStatus(verified: 408)
    public static let conflict = HttpStatus(verified: 409)
    public static let gone = HttpStatus(verified: 410)
    public static let lengthRequired = HttpStatus(verified: 411)
    public static let preconditionFailed = HttpStatus(verified: 412)
    public static let contentTooLarge = HttpStatus(verified: 413)
    public static let uriTooLong = HttpStatus(verified: 414)
    public static let unsupportedMediaType = HttpStatus(verified: 415)
    public static let rangeNotSatisfiable = HttpStatus(verified: 416)
    public static let expectationFailed = HttpStatus(verified: 417)
    public static let misdirectedRequest = HttpStatus(verified: 421)
    public static let unprocessableContent = HttpStatus(verified: 422)
    public static let upgradeRequired = HttpStatus(verified: 426)
    public static let tooManyRequests = HttpStatus(verified: 429)
    public static let requestHeaderFieldsTooLarge = HttpStatus(verified: 431)
    public static let internalServerError = HttpStatus(verified: 500)
    public static let notImplemented = HttpStatus(verified: 501)
    public static let badGateway = HttpStatus(verified: 502)
    public static let serviceUnavailable = HttpStatus(verified: 503)
    public static let gatewayTimeout = HttpStatus(verified: 504)
    public static let versionNotSupported = HttpStatus(verified: 505)
    public static let loopDetected = HttpStatus(verified: 508)

    /// 400 to 599: the statuses of refusals.
    public static let errors = HttpStatus(verified: 400)...HttpStatus(verified: 599)
    /// 200 to 599: the statuses of final responses.
    public static let finals = HttpStatus(verified: 200)...HttpStatus(verified: 599)

    /// Whether it is an interim response, which another follows: 1xx except 101. RFC 9110 §15.2.
    public var isInterim: Bool { code < 200 && code != 101 }

    /// Whether a response with this status never has content: 1xx, 204, 304. RFC 9112 §6.3.
    public var neverHasContent: Bool { code < 200 || code == 204 || code == 304 }

    /// The reason phrase of RFC 9110 §15; empty for codes that it does not define.
    public var reasonPhrase: String {
        switch code {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 103: "Early Hints"
        case 200: "OK"
        case 201: "Created"
        case 202: "Accepted"
        case 203: "Non-Authoritative Information"
        case 204: "No Content"
        case 205: "Reset Content"
        case 206: "Partial Content"
        case 300: "Multiple Choices"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 304: "Not Modified"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 402: "Payment Required"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 410: "Gone"
        case 411: "Length Required"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 428: "Precondition Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 451: "Unavailable For Legal Reasons"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 508: "Loop Detected"
        case 511: "Network Authentication Required"
        default: ""
        }
    }
}

extension HttpStatus: CustomStringConvertible {
    public var description: String { "\(code)" }
}

extension HttpStatus: OptionValue {
    public static let optionType = "status"
    public static var optionForm: OptionForm { .whole(100...599) }
    public var optionText: String { String(code) }
    public init(optionText: String) throws(OptionMistake) {
        guard let code = UnitText.number(optionText.utf8), (100...599).contains(code), let status = HttpStatus(code)
        else {
            throw OptionMistake("write a status code from 100 to 599")
        }
        self = status
    }
}
