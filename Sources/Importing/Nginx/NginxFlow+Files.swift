import HttpWare

extension NginxFlow {
    /// A place without another handler: files of a folder, or `try_files`.
    mutating func files(_ place: Place, _ access: [WareDraft], _ own: [NginxDirective]) {
        var fallback: String?
        if let tries = place.own.last(where: { $0.name == "try_files" }) {
            guard let last = tries.words.last, tries.words.count >= 2 else {
                return refuse(place, tries, "it has no fallback")
            }
            let patterns = tries.words.dropLast()
            if last.hasPrefix("@") || isAnswered(last) {
                return goOn(place, tries, last)
            }
            for pattern in patterns where !["$uri", "$uri/"].contains(pattern) {
                base.draft.note(tries.place, tries.shown, "\(pattern) is not looked for; only the path itself is")
            }
            if last.hasPrefix("=") {
                if last != "=404" {
                    base.draft.note(tries.place, tries.shown, "a file that does not exist is answered 404")
                }
                if !patterns.contains("$uri/") {
                    base.draft.skip(tries.place, tries.shown, "a folder answers with its index, too")
                }
            } else if let fixed = variables.fixed(String(last.prefix { $0 != "?" })) {
                var path = fixed
                if let location = place.location, place.own.contains(where: { $0.name == "alias" }),
                    path.hasPrefix(location.text)
                {
                    path = String(path.dropFirst(location.text.count))
                }
                while path.hasPrefix("/") { path.removeFirst() }
                fallback = path
            } else if last != "$uri", last != "$uri/" {
                return refuse(place, tries, "the fallback depends on the request")
            }
        }
        guard let (root, strip, source) = folder(place) else { return }
        if root.isEmpty {
            base.draft.note(place.place, place.label, "no root is named, so its requests are answered 404")
            return add(
                place, .answered, access + [WareDraft("mock", ["status": .word("404")], at: place.place)],
                responseWares(place, isProxied: false))
        }
        var index: [String] = []
        for word in place.scope.all("index").flatMap(\.words) {
            if word.hasPrefix("/") || word.contains("$") {
                base.draft.note(
                    place.scope.last("index")?.place ?? place.place, "index \(word)",
                    "an index is a name of a file in the folder")
            } else if word.hasSuffix(".php") {
                base.draft.note(place.scope.last("index")?.place ?? place.place, "index \(word)", "scripts are not run")
            } else {
                index.append(word)
            }
        }
        let browses = place.scope.flag("autoindex") == true
        let precompressed = place.scope.word("gzip_static") == nil ? ConfigNode.list([]) : ConfigNode.list(["gz"])
        let files = WareDraft(
            "files",
            [
                "root": .text(root), "strip": strip.map { .text($0) },
                "index": index.isEmpty || index == ["index.html"] ? nil : .list(index),
                "fallback": fallback.map { .text($0) }, "browse": browses ? .word("true") : nil,
                "precompressed": precompressed,
            ], at: source)
        let before = place.wares
        var place = place
        place.wares = []
        add(place, .answered, access + before + [files], responseWares(place, isProxied: false))
    }

    /// Whether a path of `try_files` leads to a location that another server or a script answers.
    private func isAnswered(_ last: String) -> Bool {
        guard last.hasPrefix("/"), let fixed = variables.fixed(String(last.prefix { $0 != "?" })),
            case .some(.some(let location)) = NginxEntry.find(fixed, isWhole: true, in: locations)
        else { return false }
        let handlers: Set = ["proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "return", "rewrite"]
        return location.own.contains { handlers.contains($0.name) }
    }

    /// Goes on with the location that `try_files` names last, for all requests.
    private mutating func goOn(_ place: Place, _ tries: NginxDirective, _ last: String) {
        let location: NginxLocation?
        if last.hasPrefix("@") {
            location = locations.first { $0.kind == .named && $0.text == last }
        } else if let fixed = variables.fixed(String(last.prefix { $0 != "?" })),
            case .some(let found) = NginxEntry.find(fixed, isWhole: true, in: locations)
        {
            location = found
        } else {
            location = nil
        }
        guard let location, locations.contains(where: { $0.directive.order == location.directive.order }) else {
            return refuse(place, tries, "the location \(last) is not found")
        }
        base.draft.note(tries.place, tries.shown, "files are not looked for first; all requests go on to \(last)")
        // The rules of access of this place were judged before the files were looked for.
        guard let access = accessWares(place) else { return }
        let limits = limitWares(place)
        let known = variables
        var inner = Place(
            scope: server.scope.entering(location.own), own: location.own, test: place.test, label: place.label,
            place: location.directive.place, location: last.hasPrefix("@") ? nil : location, wares: place.wares,
            isInternal: true)
        // A path of its own: the script or the page gets the path that is named.
        if !last.hasPrefix("@"), let fixed = variables.fixed(String(last.prefix { $0 != "?" })) {
            inner.wares.append(
                WareDraft(
                    "rewrite",
                    [
                        "path": .entries([
                            ("regex", .text("^.*$")),
                            ("to", .text(PathTest.encoded(fixed).replacingBytes("$", by: "$$"))),
                        ])
                    ],
                    at: tries.place))
        }
        let first = made.count
        if !rewrite(&inner) { content(inner) }
        variables = known
        for index in made.indices[first...] {
            let rules = (limits + access).filter { !made[index].middlewares.contains($0) }
            made[index].middlewares = rules + made[index].middlewares
        }
    }

    /// The folder of a place, the front of the path that it does not have, and where it is named; `nil` if the place was answered 503.
    private mutating func folder(_ place: Place) -> (root: String, strip: String?, source: SourceLocation)? {
        if let alias = place.own.last(where: { $0.name == "alias" }) {
            guard let fixed = variables.fixed(alias.first), let location = place.location else {
                refuse(place, alias, "the folder depends on the request")
                return nil
            }
            guard location.isPrefix, location.text.hasPrefix("/") else {
                refuse(place, alias, "an alias in a location of this kind has no counterpart")
                return nil
            }
            var front = location.text
            if front.hasSuffix("/") { front.removeLast() }
            let isWhole = location.text.hasSuffix("/") == fixed.hasSuffix("/")
            guard isWhole else {
                refuse(place, alias, "the alias and the location must both end with a slash, or neither")
                return nil
            }
            return (base.path(fixed), front.isEmpty ? nil : PathTest.encoded(front), alias.place)
        }
        guard let root = place.scope.last("root") else { return ("", nil, place.place) }
        guard let fixed = variables.fixed(root.first) else {
            refuse(place, root, "the folder depends on the request")
            return nil
        }
        return (base.path(fixed), nil, root.place)
    }
}
