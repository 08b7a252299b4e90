/// A request in which tokens stand in place of their placeholders.
final class OutgoingRequest {
    var request: HttpRequest

    init(_ request: HttpRequest) { self.request = request }
}
