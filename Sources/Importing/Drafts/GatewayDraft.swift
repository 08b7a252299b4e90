import HttpWare

/// Everything that an import finds: listeners, services, routes, and the lines that are not translated.
///
/// Each part has the place from which it comes. `GatewayWriter` turns the draft into a file.
struct GatewayDraft: Sendable {
    /// A line of the source that is not translated, or not needed.
    struct Note: Hashable, Sendable {
        /// The place of the line.
        var place: SourceLocation
        /// The line, or what it says.
        var text: String
        /// Why it is not translated, in lower case.
        var reason: String
        /// `false`: it changes nothing here.
        var isNeeded = true
    }

    /// The bounds of one import.
    enum Limit {
        static let routes = 5000
        static let notes = 20_000
    }

    /// The listeners in file order.
    var listeners: [ListenerDraft] = []
    /// The services in file order.
    private(set) var services: [ServiceDraft] = []
    /// The stores by name, as the file writes them.
    private(set) var stores: [(name: String, options: ConfigNode, place: SourceLocation)] = []
    /// The routes in the order in which they are tried.
    private(set) var routes: [RouteDraft] = []
    /// The lines that are not translated, or not needed, in file order.
    private(set) var notes: [Note] = []

    /// Says that a line is not translated.
    mutating func note(_ place: SourceLocation, _ text: String, _ reason: String) {
        add(Note(place: place, text: text, reason: reason))
    }

    /// Says that a line changes nothing here.
    mutating func skip(_ place: SourceLocation, _ text: String, _ reason: String) {
        add(Note(place: place, text: text, reason: reason, isNeeded: false))
    }

    /// Files that the configuration needs beside it, such as users with their hashes: names and lines.
    private(set) var files: [(name: String, lines: [String], place: SourceLocation)] = []

    /// Adds a file of these lines, or finds an equal one; returns its name.
    mutating func addFile(_ name: String, _ lines: [String], at place: SourceLocation) -> String {
        if let file = files.first(where: { $0.lines == lines }) { return file.name }
        let name = files.isEmpty ? "\(name).htpasswd" : "\(name)-\(files.count + 1).htpasswd"
        files.append((name, lines, place))
        return name
    }

    private var known: Set<Note> = []

    private mutating func add(_ note: Note) {
        guard notes.count < Limit.notes, known.insert(note).inserted else { return }
        notes.append(note)
    }

    /// Adds a store of this name, if there is none yet.
    mutating func addStore(_ name: String, _ options: ConfigNode, at place: SourceLocation) {
        if !stores.contains(where: { $0.name == name }) { stores.append((name, options, place)) }
    }

    /// Adds a service, or finds an equal one; returns its name.
    mutating func add(_ service: ServiceDraft) -> String {
        var service = service
        let base = Self.nameText(service.name)
        for index in servicesByBase[base] ?? [] where services[index].isEqual(to: service) {
            return services[index].name
        }
        service.name = base
        var number = 1
        while service.name == "passthrough" || serviceNames.contains(service.name) {
            number += 1
            service.name = "\(base.prefix(56))-\(number)"
        }
        serviceNames.insert(service.name)
        servicesByBase[base, default: []].append(services.count)
        services.append(service)
        return service.name
    }

    private var serviceNames: Set<String> = []
    private var servicesByBase: [String: [Int]] = [:]

    /// Adds a route behind the others. A condition that cannot be said becomes a refusal of all requests that may meet it.
    mutating func add(_ route: RouteDraft) {
        guard routes.count < Limit.routes else {
            note(route.place, "", "more than \(Limit.routes) routes; this one and the next are left out")
            return
        }
        routes.append(route)
    }

    /// Adds what another import of the same sources found.
    mutating func join(_ other: GatewayDraft) {
        for listener in other.listeners where !listeners.contains(where: { $0.name == listener.name }) {
            listeners.append(listener)
        }
        var names: [String: String] = [:]
        for service in other.services { names[service.name] = add(service) }
        for route in other.routes {
            var route = route
            switch route.target {
            case .service(let name): route.target = .service(names[name] ?? name)
            case .split(let shares, let cookie):
                route.target = .split(
                    shares.map { TargetDraft.Share(service: names[$0.service] ?? $0.service, weight: $0.weight) },
                    cookie: cookie)
            case .answered, .refused: break
            }
            add(route)
        }
        for note in other.notes { add(note) }
        for file in other.files where !files.contains(where: { $0.name == file.name && $0.lines == file.lines }) {
            files.append(file)
        }
    }

    /// Ends an import of a gateway that writes `X-Forwarded-For`, `-Proto` and `-Host` by itself: routes to services get the ware that
    /// does so, and the notes are put into file order.
    mutating func finishForwarding() {
        for index in routes.indices {
            switch routes[index].target {
            case .service, .split:
                // Without options, from no line: it is the habit of the other gateway.
                routes[index].middlewares.insert(WareDraft("forwarded", at: routes[index].place), at: 0)
            case .answered, .refused: break
            }
        }
        let sorted = notes.enumerated().sorted { left, right in
            let (first, second) = (left.element.place, right.element.place)
            return (first.file, first.line, left.offset) < (second.file, second.line, right.offset)
        }
        notes = sorted.map(\.element)
    }

    /// Puts these routes in the place of all.
    mutating func replaceRoutes(_ routes: [RouteDraft]) { self.routes = routes }

    /// The text as a name of ours: 1 to 64 letters, digits, `-`, `_` and `.`.
    static func nameText(_ text: String) -> String {
        var name = ""
        for scalar in text.unicodeScalars.prefix(60) {
            let isAllowed =
                scalar.isASCII && (PercentText.isUnreserved(UInt8(truncatingIfNeeded: scalar.value)) && scalar != "~")
            name.unicodeScalars.append(isAllowed ? scalar : "-")
        }
        while name.hasPrefix("-") || name.hasPrefix(".") { name.removeFirst() }
        while name.hasSuffix("-") { name.removeLast() }
        return name.isEmpty ? "unnamed" : name
    }
}

extension GatewayDraft {
    /// Leaves out the listeners of routes that are on all of them, and joins equal routes of different listeners.
    ///
    /// A route moves up to its equal only if all routes between them are on other listeners, so that no request takes another route.
    mutating func mergeListeners() {
        var merged: [RouteDraft] = []
        var places: [SourceLocation: [Int]] = [:]
        for route in routes {
            let twin = places[route.place, default: []].last { index in
                let other = merged[index]
                return other.test == route.test && other.target == route.target
                    && other.middlewares == route.middlewares
                    && other.postwares == route.postwares && other.name == route.name
                    && Set(other.listeners).isDisjoint(with: route.listeners)
            }
            if let twin,
                merged[(twin + 1)...].allSatisfy({ Set($0.listeners).isDisjoint(with: route.listeners) })
            {
                merged[twin].listeners += route.listeners
            } else {
                places[route.place, default: []].append(merged.count)
                merged.append(route)
            }
        }
        let all = Set(listeners.map(\.name))
        for index in merged.indices where Set(merged[index].listeners) == all { merged[index].listeners = [] }
        replaceRoutes(merged)
    }
}
