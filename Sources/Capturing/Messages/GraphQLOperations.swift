import HttpWare

/// Finds the names of the GraphQL operations in a request. It reads JSON with `query` and `operationName`, alone or in a batch,
/// the query parameters of a GET, and a document as content. In a form with files it reads the part `operations`.
public enum GraphQLOperations {
    /// The most names of one request, and the most characters of a name.
    private static let mostNames = 100
    private static let longestName = 200

    /// The names, in order, without duplicates. Empty if the request is not a GraphQL request, or its operations have no names.
    ///
    /// - Parameters:
    ///   - method: `GET` has the operations in the query, other methods in the content.
    ///   - url: the URL, whose path may identify a GraphQL request.
    ///   - mediaType: the value of `Content-Type`; `nil` if it is missing.
    ///   - content: the decoded content, as far as it was captured.
    public static func names(method: String, url: String, mediaType: String?, content: [UInt8]) -> [String] {
        guard mayBeThere(method: method, url: url, content: content) else { return [] }
        var names: [String] = []
        let type = (mediaType ?? "").lowercased()
        let isGraphQLPath = path(url).lowercased().contains("graphql")
        if method == "GET" {
            request(query(url), isGraphQLPath, &names)
        } else if type.hasPrefix("application/graphql"), !type.hasPrefix("application/graphql+json"),
            !type.hasPrefix("application/graphql-response")
        {
            names = GraphQLDocument.names(String(decoding: content, as: UTF8.self)) ?? []
        } else if type.hasPrefix("multipart/form-data") {
            if let part = operationsPart(content) { json(part, isGraphQLPath, &names) }
        } else if type.hasPrefix("application/json") || type.hasPrefix("application/graphql+json") || type.isEmpty {
            json(content, isGraphQLPath, &names)
        }
        var known: Set<String> = []
        return names.filter { !$0.isEmpty && $0.utf8.count <= longestName && known.insert($0).inserted }
    }

    /// Whether a request has a place for an operation. Most requests do not.
    static func mayBeThere(method: String, url: String, content: [UInt8]) -> Bool {
        method == "GET" ? url.utf8.contains(0x3f) : !content.isEmpty
    }

    // MARK: JSON

    private static func json(_ bytes: [UInt8], _ isGraphQLPath: Bool, _ names: inout [String]) {
        var scanner = JsonScanner(bytes, rules: .lenient)
        if (try? scanner.enterList()) == true {
            while names.count < mostNames, (try? scanner.hasNextElement()) == true {
                let (members, isWhole) = members(&scanner)
                request(members, isGraphQLPath, &names)
                if !isWhole { return }
            }
        } else {
            request(members(&scanner).0, isGraphQLPath, &names)
        }
    }

    /// The strings among the members of an object, as far as it is complete, and whether it is complete. A persisted query counts
    /// as a member.
    private static func members(_ scanner: inout JsonScanner) -> ([String: String], isWhole: Bool) {
        var members: [String: String] = [:]
        do throws(JsonFault) {
            guard try scanner.enterObject() else { return ([:], false) }
            while let name = try scanner.nextMember() {
                switch name {
                case "query", "operationName": if let text = try scanner.value().string { members[name] = text }
                case "extensions": if try scanner.value()["persistedQuery"] != nil { members["persisted"] = "" }
                default: try scanner.skip()
                }
            }
            return (members, true)
        } catch {
            return (members, false)
        }
    }

    private static func request(_ members: [String: String], _ isGraphQLPath: Bool, _ names: inout [String]) {
        let document = members["query"].flatMap { GraphQLDocument.names($0) }
        // Other APIs also use a member with that name.
        guard document != nil || members["query"] == nil && (isGraphQLPath || members["persisted"] != nil) else {
            return
        }
        if let name = members["operationName"], !name.isEmpty {
            names.append(name)
        } else {
            names += (document ?? []).prefix(mostNames)
        }
    }

    // MARK: URL

    private static func path(_ url: String) -> Substring { url.prefix { $0 != "?" && $0 != "#" } }

    private static func query(_ url: String) -> [String: String] {
        var members: [String: String] = [:]
        let query = url.utf8.drop { $0 != 0x3f }.dropFirst().prefix { $0 != 0x23 }
        for pair in query.split(separator: 0x26) {
            let name = pair.prefix { $0 != 0x3d }
            let value = QueryParameters.decoded(pair.dropFirst(name.count + 1))
            switch String(decoding: QueryParameters.decoded(name), as: UTF8.self) {
            case "query": members["query"] = String(decoding: value, as: UTF8.self)
            case "operationName": members["operationName"] = String(decoding: value, as: UTF8.self)
            case "extensions":
                if (try? JsonValue(value, rules: .lenient))?["persistedQuery"] != nil { members["persisted"] = "" }
            default: break
            }
        }
        return members
    }

    // MARK: Forms

    /// The parts that may precede the operations.
    private static let mostParts = 8

    /// The content of the part `operations` of multipart/form-data (RFC 7578 §4), as far as it is available.
    private static func operationsPart(_ content: [UInt8]) -> [UInt8]? {
        guard let boundary = MultipartReader.boundary(in: content) else { return nil }
        var reader = MultipartReader(content, boundary: boundary)
        for _ in 0..<mostParts {
            guard let part = reader.next() else { return nil }
            if part.names.contains("operations") { return Array(content[part.content]) }
        }
        return nil
    }
}
