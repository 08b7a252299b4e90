package import HttpWare

/// The head of a response that others may share, before it is known whether there are others.
package enum CollapsedHead {
    /// The head that followers receive.
    case made(CollapsedResponse.Head)
    /// Followers receive exactly the lines that are stored. Their head is made when one comes.
    case stored(HttpStatus, StoredLines, VaryKey, length: Int?)
    /// Followers receive these fields. Their head is made when one comes.
    case received(HttpStatus, HttpFields, VaryKey, length: Int?)

    /// The head of a response that is stored under `head`, and that has this length.
    ///
    /// Followers receive the fields of the response, `Age` and `Date` among them, without the fields that are for one client alone.
    package init(
        _ response: borrowing HttpResponse, _ head: borrowing StoredHead, directives: borrowing ResponseDirectives,
        mode: CacheMode, keepsCookies: Bool
    ) {
        let fields = response.fields
        if head.part == nil, fields.contains(.date), head.lines.count == fields.count {
            self = .stored(response.status, head.lines, head.vary, length: response.content.length)
            return
        }
        let removes = directives.namesFields || !keepsCookies && fields.contains(.setCookie)
        let shared =
            removes
            ? StoredFields.kept(fields, directives: copy directives, mode: mode, keepsCookies: keepsCookies) : fields
        self = .received(response.status, shared, head.vary, length: response.content.length)
    }

    var made: CollapsedResponse.Head {
        switch self {
        case .made(let head): head
        case .stored(let status, let lines, let vary, let length): head(status, lines.fields, vary, length)
        case .received(let status, let fields, let vary, let length): head(status, fields, vary, length)
        }
    }

    private func head(
        _ status: HttpStatus, _ fields: HttpFields, _ vary: VaryKey, _ length: Int?
    ) -> CollapsedResponse.Head {
        var response = HttpResponse(status, fields: fields)
        response.content = .streamed(length: length)
        return CollapsedResponse.Head(response, vary: vary, isFailure: false)
    }
}
