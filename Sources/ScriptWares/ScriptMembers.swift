import Scripting

/// The kinds of objects that scripts use.
enum ScriptKind: Int, CaseIterable {
    case request, response, exchange, requestFields, responseFields, cookies, variables, claims

    /// The kind in an error's text.
    var name: String {
        switch self {
        case .request: "the request"
        case .response: "the response"
        case .exchange: "x"
        case .requestFields, .responseFields: "fields"
        case .cookies: "cookies"
        case .variables: "vars"
        case .claims: "claims"
        }
    }

    var hasKeys: Bool {
        switch self {
        case .request, .response, .exchange: false
        default: true
        }
    }
}

/// The properties of a request, by their names.
enum RequestMember: Int, CaseIterable {
    case method, scheme, host, port, authority, path, query, target, body, cookies, client, principal, fields
}

/// The methods of a request.
enum RequestMethod: Int, CaseIterable {
    case param, params, setParam
}

/// The properties of a response.
enum ResponseMember: Int, CaseIterable {
    case status, fields, body, responder
}

/// The properties of an exchange.
enum ExchangeMember: Int, CaseIterable {
    case id, route, service, listener, attempt, claims, vars, request
}

/// The methods of an exchange.
enum ExchangeMethod: Int, CaseIterable {
    case log, note, replay
}

/// The methods of fields.
enum FieldsMethod: Int, CaseIterable {
    case all, add, each
}

extension ScriptLibrary {
    /// All functions and objects of the ware `script`.
    static let ofWare = {
        var library = ScriptLibrary()
        for (number, function) in ScriptFunction.all.enumerated() {
            library.add(function: function.names.name, in: function.names.library, number: number)
        }
        library.add(null: "null", in: "json")
        for kind in ScriptKind.allCases {
            library.add(kind: kind.rawValue, name: kind.name, hasKeys: kind.hasKeys)
            switch kind {
            case .request:
                for member in RequestMember.allCases { library.add(property: "\(member)", number: member.rawValue) }
                for method in RequestMethod.allCases { library.add(method: "\(method)", number: method.rawValue) }
            case .response:
                for member in ResponseMember.allCases { library.add(property: "\(member)", number: member.rawValue) }
            case .exchange:
                for member in ExchangeMember.allCases { library.add(property: "\(member)", number: member.rawValue) }
                for method in ExchangeMethod.allCases { library.add(method: "\(method)", number: method.rawValue) }
            case .requestFields, .responseFields:
                for method in FieldsMethod.allCases {
                    library.add(method: "\(method)", number: method.rawValue, iterates: method == .each)
                }
            case .cookies, .variables, .claims: break
            }
        }
        return library
    }()
}
