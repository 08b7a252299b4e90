package import HttpWare

/// The head of a response that others may share, before it is known whether there are others.
package enum CollapsedHead {
    /// The head that followers receive.
    case made(CollapsedResponse.Head)
    /// Followers receive exactly the lines that are stored: their head is made when one comes.
    case stored(HttpStatus, StoredLines, VaryKey, length: Int?)

    /// The head of a response that is stored under `head`, and that has this length.
    ///
    /// Followers receive the fields that other clients may receive: all lines except the ones that are not stored. They also
    /// receive the `Age` and `Date` of the response.
    package init(
        _ response: borrowing HttpResponse, _ head: borrowing StoredHead, directives: borrowing ResponseDirectives,
        mode: CacheMode,
        keepsCookies: Bool
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
        self = .made(CollapsedResponse.Head(copy response, vary: head.vary, isFailure: false, fields: shared))
    }

    var made: CollapsedResponse.Head {
        switch self {
        case .made(let head): return head
        case .stored(let status, let lines, let vary, let length):
            var response = HttpResponse(status, fields: lines.fields)
            response.content = .streamed(length: length)
            return CollapsedResponse.Head(response, vary: vary, isFailure: false)
        }
    }
}
