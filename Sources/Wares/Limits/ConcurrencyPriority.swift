public import HttpWare

/// The priority of a waiting request; higher ones go first.
public enum ConcurrencyPriority: Sendable {
    /// All requests have the same priority.
    case none
    /// The number in a field of the request, from -1000 to 1000; 0 if it is missing. For trusted clients.
    case header(FieldName)
    /// The number of the request's route, by name; 0 for all other routes.
    case routes([String: Int])

    /// The number for a request.
    func number(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Int {
        switch self {
        case .none: return 0
        case .routes(let numbers): return exchange.route.flatMap { numbers[$0] } ?? 0
        case .header(let name):
            guard let text = request.fields[name], let number = try? Int(optionText: text) else { return 0 }
            return min(1000, max(-1000, number))
        }
    }

    /// Reads `header.NAME`, or a map of routes to numbers.
    init(_ key: String, _ options: inout OptionsReader, doc: String) {
        self = .none
        guard let node = options.readNode(key, type: "header.NAME, or map of route to whole number", doc: doc) else {
            return
        }
        if let text = node.text {
            guard case .header(let name) = try? RequestKey(optionText: text) else {
                options.fail(at: key, "names no field; write header.NAME, or a map such as { orders: 10 }")
                return
            }
            self = .header(name)
            return
        }
        var numbers: [String: Int] = [:]
        for entry in node.entries ?? [] {
            guard let text = entry.value.text, let number = try? Int(optionText: text), (-1000...1000).contains(number)
            else {
                options.fail(at: key, "the priority of \(entry.key) is not a whole number from -1000 to 1000")
                continue
            }
            numbers[entry.key] = number
        }
        if numbers.isEmpty, node.entries?.isEmpty != false {
            options.fail(at: key, "names no route; write header.NAME, or a map such as { orders: 10 }")
        }
        self = .routes(numbers)
    }
}
