import HttpWare

/// The proxy through which a client reaches servers, such as a company's proxy.
///
/// ```swift
/// ServiceDefinition(baseURL: "https://api.example.com", proxy: .environment)
/// ```
///
/// Requests with TLS go through a tunnel (CONNECT), so the proxy cannot read them; other requests are sent to the proxy itself.
/// The client speaks HTTP/1.1 with the proxy.
public struct ClientProxy: Sendable {
    private let make: @Sendable () throws -> UpstreamProxy?

    /// No proxy, whatever the environment names.
    public static let none = ClientProxy { nil }

    /// The proxies that the variables `http_proxy`, `https_proxy` and `no_proxy` name when the manager is made.
    public static let environment = ClientProxy { try UpstreamProxy.ofEnvironment() }

    /// A proxy by its URL, with a user and a password if it requires them: `http://user:password@proxy.corp:3128`. Hosts in
    /// `except`, written as in `NO_PROXY`, are reached directly.
    public static func url(_ url: String, except: [String] = []) -> ClientProxy {
        ClientProxy { try UpstreamProxy(url: url, except: except) }
    }

    private init(_ make: @escaping @Sendable () throws -> UpstreamProxy?) { self.make = make }

    /// The proxy for the transport. Throws an error that states what is wrong, without the password.
    func resolved() throws(HttpError) -> UpstreamProxy? {
        do {
            return try make()
        } catch {
            let hint = (error as? OptionMistake)?.hint ?? "\(error)"
            throw HttpError(.client, .invalidRequest, .making, "the proxy is not valid: \(hint)", underlying: error)
        }
    }
}
