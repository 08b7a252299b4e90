/// The endpoint that an exchange's client should stay with.
struct EndpointKeep {
    /// The keeper of the service's clients: the endpoint belongs to it.
    let keeper: ObjectIdentifier
    /// The number of the endpoint that the client's cookie names, and the cookie's end in seconds since 1970; `nil` without a valid cookie.
    let named: (endpoint: UInt64, end: UInt64)?
    /// Whether the request goes to that endpoint.
    var isHeld = false
    /// The new cookie for the client; `nil` if it keeps the one it has.
    var mark: ShareMark?
}
