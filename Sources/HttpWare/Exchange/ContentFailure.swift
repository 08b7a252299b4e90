extension GatewayError {
    /// The failure of a request's content filter, whichever way the content took. A `GatewayError` already carries its fault.
    static func ofRequestFilter(_ error: any Error) -> GatewayError {
        if let error = error as? GatewayError { return error }
        if let fault = error as? ContentDecoder.Fault {
            return GatewayError(.downstream, .requestMalformed, fault.description)
        }
        return GatewayError(.gateway, .wareFailed, "a content filter failed: \(error)")
    }

    /// The failure of a response's content filter, whichever way the content took. A `GatewayError` already carries its fault.
    static func ofResponseFilter(_ error: any Error) -> GatewayError {
        if let error = error as? GatewayError { return error }
        if let fault = error as? ContentDecoder.Fault {
            return GatewayError(.upstream, .responseMalformed, fault.description)
        }
        return GatewayError(.upstream, .wareFailed, "a content filter failed: \(error)")
    }
}
