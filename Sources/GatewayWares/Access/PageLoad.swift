import HttpWare

/// Recognizes requests with which a browser loads a page. They can be answered with a redirect to a login.
enum PageLoad {
    /// Whether a browser loads a page. If the request has `Sec-Fetch-Mode`, the field decides. Otherwise the request
    /// must accept HTML, and have neither `X-Requested-With` nor an upgrade.
    static func isOne(_ request: borrowing HttpRequest) -> Bool {
        let modes = request.fields.rawValues(of: fetchMode)
        if let mode = modes.first { return modes.count == 1 && mode.elementsEqual("navigate".utf8) }
        guard !request.fields.contains(requestedWith), request.upgrade == nil else { return false }
        return request.fields.rawValues(of: .accept).contains { value in
            value.indices.contains { value[$0] == UInt8(ascii: "t") && value[$0...].starts(with: "text/html".utf8) }
        }
    }

    private static let fetchMode: FieldName = "Sec-Fetch-Mode"
    private static let requestedWith: FieldName = "X-Requested-With"
}
