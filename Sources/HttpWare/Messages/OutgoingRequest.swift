/// A request in which tokens replace their placeholders.
final class OutgoingRequest {
    var request: HttpRequest

    init(_ request: HttpRequest) { self.request = request }
}
