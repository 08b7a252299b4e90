// One file: the fetches of HAProxy and the ways to compare them.
import HttpWare

/// The access lists of a section of HAProxy, and the conditions that use them.
struct HaproxyConditions {
    /// The bound of members that one name or condition has.
    private static let most = 2000

    private var lists: [String: RequestTest] = [:]
    /// Whether an earlier rule changed the path, so that a condition on it is not about the path as received.
    var hasNewPath = false
    /// The names of fields that earlier rules changed, in lower case.
    var newFields: Set<String> = []
    /// Whether an earlier rule changed the address of the client.
    var hasNewClient = false

    /// The mark of a condition on a user and a password.
    static let credentials = "http_auth("

    /// The lists of these lines.
    init(_ lines: [HaproxyLine]) {
        for line in lines where line.name == "acl" && line.words.count >= 3 {
            let test = Self.test(Array(line.words.dropFirst(2)), shown: line.shown)
            let name = line.words[1]
            // Lists of the same name are one.
            if let known = lists[name] {
                guard known.size < Self.most else { continue }
                lists[name] = .any([known, test])
            } else {
                lists[name] = test
            }
        }
    }

    /// The condition behind `if` or `unless` in the words; every request without one. `nil` for the rest of the words means that there is none.
    func test(in words: some Collection<String>) -> RequestTest {
        let words = Array(words)
        guard let start = words.firstIndex(where: { $0 == "if" || $0 == "unless" }) else { return .always }
        let test = condition(Array(words[(start + 1)...]))
        return words[start] == "unless" ? .not(test) : test
    }

    /// The words before `if` and `unless`.
    static func action(_ words: some Collection<String>) -> [String] {
        Array(words.prefix { $0 != "if" && $0 != "unless" })
    }

    private func condition(_ words: [String]) -> RequestTest {
        var alternatives: [RequestTest] = []
        var members: [RequestTest] = []
        var isNegative = false
        var index = 0
        var count = 0
        while index < words.count {
            count += 1
            guard count < Self.most else { return .unknown("more than \(Self.most) conditions") }
            var word = words[index]
            index += 1
            if word == "||" || word.lowercased() == "or" {
                alternatives.append(.all(members))
                members = []
                continue
            }
            if word == "&&" || word.lowercased() == "and" { continue }
            while word.hasPrefix("!") {
                isNegative.toggle()
                word.removeFirst()
            }
            if word.isEmpty { continue }
            var test: RequestTest
            if word == "{" {
                let end = words[index...].firstIndex(of: "}") ?? words.count
                let inner = Array(words[index..<end])
                test = Self.test(inner, shown: "{ " + inner.joined(separator: " ") + " }")
                index = min(end + 1, words.count)
            } else {
                test = lists[word] ?? Self.predefined(word) ?? .unknown("the ACL \(word) is not defined")
            }
            if isStale(test) { test = .unknown("\(word) after a rule that changed what it looks at") }
            members.append(isNegative ? .not(test) : test)
            isNegative = false
        }
        alternatives.append(.all(members))
        return alternatives.count == 1 ? alternatives[0] : .any(alternatives)
    }

    /// Whether an earlier rule changed what the condition looks at.
    private func isStale(_ test: RequestTest) -> Bool {
        switch test {
        case .all(let members), .any(let members): members.contains(where: isStale)
        case .not(let inner): isStale(inner)
        case .path: hasNewPath
        case .header(let name, _): newFields.contains(name.lowercased())
        case .host, .hostBelow: newFields.contains("host")
        case .cookie: newFields.contains("cookie")
        case .client: hasNewClient
        default: false
        }
    }

    private static func predefined(_ name: String) -> RequestTest? {
        switch name {
        case "TRUE", "HTTP", "HTTP_1.1", "WAIT_END", "HTTP_URL_SLASH": .always
        case "FALSE": .never
        case "LOCALHOST": .any([.client("127.0.0.0/8"), .client("::1")])
        case "METH_GET": .any([.method("GET"), .method("HEAD")])
        case "METH_CONNECT", "METH_DELETE", "METH_HEAD", "METH_OPTIONS", "METH_POST", "METH_PUT", "METH_TRACE":
            .method(String(name.dropFirst(5)))
        default: nil
        }
    }

    // MARK: One comparison

    private enum Match: String {
        case str, beg, end, sub, reg, dir, dom, found, ip, bool, len
    }

    /// The condition of `hdr(host) -i example.com` and the like.
    static func test(_ words: [String], shown: String) -> RequestTest {
        let unknown = RequestTest.unknown(shown)
        guard var fetch = words.first else { return unknown }
        var rest = words.dropFirst()
        var ignoresCase = false
        var match: Match?
        // Converters that only change the case, or decode.
        let parts = fetch.split(separator: ",").map(String.init)
        if parts.count > 1 {
            for converter in parts.dropFirst() {
                if converter == "lower" || converter == "lower()" {
                    ignoresCase = true
                } else if converter != "url_dec" {
                    return unknown
                }
            }
            fetch = parts[0]
        }
        while let flag = rest.first, flag.hasPrefix("-"), flag.utf8.count > 1 {
            rest.removeFirst()
            switch flag {
            case "-i": ignoresCase = true
            case "-n": break
            case "-m":
                guard let kind = rest.popFirst(), let known = Match(rawValue: kind) else { return unknown }
                match = known
            case "--":
                return compare(fetch, match, Array(rest), ignoresCase) ?? unknown
            default: return unknown
            }
        }
        guard rest.count <= most else { return unknown }
        return compare(fetch, match, Array(rest), ignoresCase) ?? unknown
    }

    private static func compare(_ fetch: String, _ match: Match?, _ values: [String], _ ignoresCase: Bool)
        -> RequestTest?
    {
        var name = fetch
        var argument = ""
        if let open = fetch.firstIndex(of: "("), fetch.hasSuffix(")") {
            name = String(fetch[..<open])
            argument = String(fetch[fetch.index(after: open)...].dropLast())
            argument = argument.split(separator: ",").first.map { $0.trimmed } ?? ""
        }
        if name.hasPrefix("req.") { name = String(name.dropFirst(4)) }
        if name.hasPrefix("fc_") || name.hasPrefix("be_") || name.hasPrefix("fe_") { return nil }
        // `hdr_beg` is `hdr -m beg`.
        var match = match
        for suffix in ["beg", "end", "sub", "reg", "dir", "dom"] where name.hasSuffix("_" + suffix) && match == nil {
            match = Match(rawValue: suffix)
            name = String(name.dropLast(suffix.count + 1))
        }
        let isFalse = match == nil && values == ["0"] || values == ["false"] || values == ["off"]
        switch name {
        case "always_true": return .always
        case "always_false": return .never
        case "ssl_fc", "https":
            guard values.isEmpty || isFalse || ["1", "true", "on"].contains(values[0]) else { return nil }
            return isFalse ? .not(.scheme("https")) : .scheme("https")
        case "method":
            guard !values.isEmpty, match == nil || match == .str, values.allSatisfy({ FieldText.isName($0) }) else {
                return nil
            }
            return .any(values.map { .method(ignoresCase ? $0.uppercased() : $0) })
        case "src":
            let networks = values.compactMap { NetworkText.network($0) }
            guard !values.isEmpty, networks.count == values.count, match == nil || match == .ip else { return nil }
            return .any(networks.map { .client($0) })
        case "path", "path_only", "url":
            guard name != "url" || match == .beg || match == .dir else { return nil }
            return paths(match ?? .str, values, ignoresCase)
        case "hdr", "fhdr", "shdr_unused":
            guard !argument.isEmpty else { return nil }
            if argument.lowercased() == "host" { return hosts(match ?? .str, values, ignoresCase) }
            guard
                FieldText.isName(argument) || argument.lowercased() == "upgrade"
                    || argument.lowercased() == "connection"
            else {
                return nil
            }
            return texts(match ?? .str, values, ignoresCase) { .header(argument, $0) }
        case "hdr_cnt":
            guard FieldText.isName(argument), values.isEmpty || values == ["gt", "0"] || values == ["eq", "0"] else {
                return nil
            }
            return values == ["eq", "0"] ? .not(.header(argument, nil)) : .header(argument, nil)
        case "cook", "cookie":
            guard !argument.isEmpty else { return nil }
            return texts(match ?? .str, values, ignoresCase) { .cookie(argument, $0) }
        case "url_param", "urlp":
            guard !argument.isEmpty else { return nil }
            return texts(match ?? .str, values, ignoresCase) { .query(argument, $0) }
        case "ssl_fc_sni":
            return nil
        default: return nil
        }
    }

    private static func paths(_ match: Match, _ values: [String], _ ignoresCase: Bool) -> RequestTest? {
        guard !values.isEmpty else { return nil }
        var tests: [RequestTest] = []
        for value in values {
            let path: PathTest
            switch match {
            case .str: path = .exact(value)
            case .beg: path = .prefix(value)
            case .end: path = .suffix(value)
            case .sub: path = .contains(value)
            case .dir:
                let inner = value.split(separator: "/").joined(separator: "/")
                guard !inner.isEmpty else { return nil }
                path = .expression("(^|/)" + PathTest.escaped(inner) + "(/|$)")
            case .reg:
                guard NginxCondition.isValid(value) else { return nil }
                path = .expression(value)
            default: return nil
            }
            tests.append(.path(path, ignoresCase: ignoresCase))
        }
        return tests.count == 1 ? tests[0] : .any(tests)
    }

    private static func hosts(_ match: Match, _ values: [String], _ ignoresCase: Bool) -> RequestTest? {
        if match == .found { return .always }
        guard !values.isEmpty else { return nil }
        var tests: [RequestTest] = []
        for value in values {
            let escaped = PathTest.escapedLiteral(value)
            switch match {
            case .str:
                let name = value.lowercased()
                let parts = name.split(separator: ":", omittingEmptySubsequences: false)
                guard
                    HostText.isName(name)
                        || parts.count == 2 && HostText.isName(String(parts[0])) && UInt16(parts[1]) != nil
                else { return nil }
                tests.append(.host(name))
            case .beg: tests.append(.header("Host", "~(?i)^" + escaped))
            case .end:
                // The port, if there is one, is not part of what is meant.
                guard let test = RequestTest.host(matching: escaped + "$") else { return nil }
                tests.append(test)
            case .sub: tests.append(.header("Host", "~(?i)" + escaped))
            case .dom, .dir:
                tests.append(.header("Host", "~(?i)(^|[./:?])" + escaped + "([./:?]|$)"))
            case .reg:
                guard NginxCondition.isValid(value), let test = RequestTest.host(matching: value) else { return nil }
                tests.append(test)
            default: return nil
            }
        }
        return tests.count == 1 ? tests[0] : .any(tests)
    }

    private static func texts(
        _ match: Match, _ values: [String], _ ignoresCase: Bool, _ make: (String?) -> RequestTest
    ) -> RequestTest? {
        if match == .found { return make(nil) }
        guard !values.isEmpty else { return nil }
        var tests: [RequestTest] = []
        for value in values {
            let escaped = PathTest.escapedLiteral(value)
            let flags = ignoresCase ? "(?i)" : ""
            let expression: String
            switch match {
            case .str: expression = ignoresCase ? "~(?i)^" + escaped + "$" : RequestTest.literal(value)
            case .beg: expression = "~\(flags)^" + escaped
            case .end: expression = "~\(flags)" + escaped + "$"
            case .sub: expression = "~\(flags)" + escaped
            case .dir: expression = "~\(flags)(^|/)" + escaped + "(/|$)"
            case .dom: expression = "~\(flags)(^|[./:?])" + escaped + "([./:?]|$)"
            case .reg:
                guard NginxCondition.isValid(value) else { return nil }
                expression = "~" + flags + value
            default: return nil
            }
            tests.append(make(expression))
        }
        return tests.count == 1 ? tests[0] : .any(tests)
    }
}
