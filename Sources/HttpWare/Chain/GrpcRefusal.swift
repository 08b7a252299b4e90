/// The form of refusals for clients of gRPC: `Trailers-Only`, a head with 200 that ends the response and has `grpc-status` and
/// `grpc-message`. gRPC over HTTP/2, *Responses*.
///
/// The response gets this form when it leaves, behind all wares, which see its true status. So do logs, metrics and records.
enum GrpcRefusal {
    /// Whether a response takes this form: a ware or the gateway refuses a request of gRPC, and not in this form already.
    static func concerns(_ response: borrowing HttpResponse, by responder: Responder, to request: borrowing HttpRequest)
        -> Bool
    {
        switch responder {
        case .gateway, .ware: break
        case .upstream, .cache, .interception: return false
        }
        return response.status.code >= 300 && isFromGrpcClient(request) && response.fields[statusField] == nil
            && !isGrpc(response.fields[.contentType])
    }

    /// Whether the client sent the request as one of gRPC. gRPC-Web is another protocol: its trailers are content.
    static func isFromGrpcClient(_ request: borrowing HttpRequest) -> Bool {
        request.fields.present & KnownField.contentType.bit != 0 && isGrpc(request.fields.received[.contentType])
    }

    /// `application/grpc`, alone, with a subtype such as `+proto`, or with parameters.
    private static func isGrpc(_ type: String?) -> Bool {
        guard let type = type?.utf8, type.count >= grpc.utf8.count else { return false }
        return zip(type, grpc.utf8).allSatisfy { ByteClass.lower($0) == $1 }
            && type.dropFirst(grpc.utf8.count).first.map { "+; \t".utf8.contains($0) } ?? true
    }

    /// The status of gRPC for a status of HTTP: the one that clients of gRPC use themselves if a response has none.
    static func code(for status: HttpStatus) -> Int {
        switch status.code {
        case 400, 431: 13  // INTERNAL
        case 401: 16  // UNAUTHENTICATED
        case 403: 7  // PERMISSION_DENIED
        case 404: 12  // UNIMPLEMENTED
        case 429, 502, 503, 504: 14  // UNAVAILABLE
        default: 2  // UNKNOWN
        }
    }

    /// The value of `grpc-message`: printable ASCII characters but `%`, and percent-encoded bytes.
    static func encoded(_ message: String) -> String {
        var bytes: [UInt8] = []
        for byte in message.utf8.prefix(longestMessage) {
            if (0x20...0x7e).contains(byte), byte != UInt8(ascii: "%") {
                bytes.append(byte)
            } else {
                bytes.append(UInt8(ascii: "%"))
                for digit in [byte >> 4, byte & 0x0f] { bytes.append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The text for the client: the detail of the refusal, else its content if that is a short text, else the status.
    private static func message(of response: borrowing HttpResponse) -> String {
        if let problem = response.problem { return problem.detail }
        if let bytes = response.content.bytes, !bytes.isEmpty, bytes.count <= longestMessage,
            response.fields[.contentEncoding] == nil, response.fields[.contentType]?.hasPrefix("text/plain") == true,
            let text = String(validating: bytes, as: UTF8.self), text.contains(where: { !$0.isWhitespace })
        {
            let start = text.drop(while: \.isWhitespace)
            return String(start.reversed().drop(while: \.isWhitespace).reversed())
        }
        let phrase = response.status.reasonPhrase
        return "HTTP status \(response.status.code)" + (phrase.isEmpty ? "" : " (\(phrase))")
    }

    /// The response in this form. Fields that do not describe the content stay.
    static func form(of response: borrowing HttpResponse) -> HttpResponse {
        var form = HttpResponse(.ok, fields: response.fields)
        for name in representation + HttpFields.digests { form.fields.remove(name) }
        form.fields.append(FieldLine(literal: .contentType, "application/grpc"))
        form.fields.append(FieldLine(statusField, number: code(for: response.status)))
        form.fields.setOwn(messageField, encoded(message(of: response)))
        return form
    }

    /// The maximum length of the text in bytes: clients limit trailers to 8 KiB.
    private static let longestMessage = 1024
    private static let grpc = "application/grpc"
    private static let statusField: FieldName = "grpc-status"
    private static let messageField: FieldName = "grpc-message"
    private static let representation: [FieldName] = [
        .contentType, .contentEncoding, .contentLength, .contentRange, .contentLocation, .contentDisposition, .etag,
        .lastModified, .acceptRanges, .trailer, "Content-Language", "grpc-status", "grpc-message",
        "grpc-status-details-bin",
    ]
}
