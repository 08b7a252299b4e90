import HttpWare

/// The query of a request to the admin listener.
struct AdminQuery {
    /// The query with its question mark; empty without parameters.
    let text: String

    /// Makes a query of the parameters that have a value.
    init(_ parameters: [(name: String, value: String?)]) {
        let pairs = parameters.compactMap { name, value in value.map { name + "=" + PercentText.text($0) } }
        text = pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
    }
}
