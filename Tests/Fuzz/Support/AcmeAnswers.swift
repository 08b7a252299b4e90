@testable import Acme
@testable import Credentials
@testable import HttpWare

/// Answers of a certificate authority, bytes of a ClientHello, and the content of a store's files.
extension Fuzzing {
    private static let directory = EndpointUrl("https://ca.test/dir")

    /// The input is read as each of these: it is taken, or refused with one line of bounded length. Taken input leads nowhere in clear
    /// text, and a token is part of a path as it is.
    public static func acmeAnswer(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, bytes) = input(start, count), let directory else { return }
        bytes.withUnsafeBufferPointer { bytes in
            _ = TlsContext.hostName(inHello: bytes)
            _ = TlsContext.offersOnlyChallenge(inHello: bytes)
        }
        guard let json = try? JsonValue(bytes) else { return }
        let problem = AcmeProblem(json)
        check(problem.failure("it failed", status: 400).reason)
        let state = RenewalState(json)
        if let again = try? JsonValue(state.json.bytes) {
            require(RenewalState(again) == state, "another state is read")
        }
        do throws(AcmeFailure) {
            switch choice & 3 {
            case 0:
                let read = try AcmeDirectory(json, at: directory)
                for url in [read.newNonce, read.newOrder] { check(url) }
            case 1:
                let order = try AcmeOrder(json, for: ["a.test"], at: directory)
                require(order.authorizations.count <= 1, "more authorizations than names")
                for url in order.authorizations + [order.finalize] { check(url) }
            case 2:
                for challenge in try AcmeAuthorization(json, at: directory).challenges {
                    check(challenge.url)
                    require(
                        !challenge.token.utf8.contains { $0 == 0x2f || $0 == 0x2e || $0 <= 0x20 }, "a strange token")
                }
            default:
                let info = try RenewalInfo(json)
                require(info.start < info.end, "a window that ends before it begins")
                let moment = info.moment(0.5)
                require(moment >= info.start && moment <= info.end, "a moment outside of the window")
            }
        } catch {
            check(error.reason)
        }
    }

    private static func check(_ url: AcmeUrl) { require(url.text.hasPrefix("https://"), "a URL in clear text") }

    private static func check(_ reason: String) {
        require(reason.utf8.count < 10_000, "too long")
        require(!reason.unicodeScalars.contains { $0.value < 0x20 || (0x7f...0x9f).contains($0.value) }, "not one line")
    }
}
