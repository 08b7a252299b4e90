import HttpWare

/// Turns manifests of Kubernetes into listeners, services and routes: Ingress with the annotations of ingress-nginx, and HTTPRoute with Gateway.
struct KubernetesImport {
    /// A route with what its place in the order depends on.
    struct Ranked {
        var route: RouteDraft
        /// Compared from the first number on; the larger one comes first.
        var rank: [Int]
    }

    /// The kinds of manifests that an import is asked for.
    enum Kind: Sendable { case ingress, httpRoute }

    var draft = GatewayDraft()
    var ranked: [Ranked] = []
    /// Listeners on which client certificates are asked for in a way that is not understood.
    var closed: Set<String> = []
    /// Services by `namespace/name`.
    private(set) var services: [String: ConfigNode] = [:]
    /// Secrets by `namespace/name`.
    private(set) var secrets: [String: ConfigNode] = [:]

    /// Translates documents, each as a tree, in any order.
    static func translate(_ documents: [ConfigNode], as kind: Kind) -> GatewayDraft {
        var reader = KubernetesImport()
        let objects = documents.flatMap(Self.items)
        for object in objects {
            let key = "\(namespace(of: object))/\(name(of: object))"
            if object["kind"]?.text == "Service" { reader.services[key] = object }
            if object["kind"]?.text == "Secret" { reader.secrets[key] = object }
        }
        let ingresses = objects.filter { $0["kind"]?.text == "Ingress" }
        let routes = objects.filter { $0["kind"]?.text == "HTTPRoute" }
        let gateways = objects.filter { $0["kind"]?.text == "Gateway" }
        for object in objects { reader.nameOther(object) }
        if !ingresses.isEmpty { reader.readIngresses(ingresses) }
        if !routes.isEmpty || !gateways.isEmpty { reader.readRoutes(routes, gateways) }
        let sorted = reader.ranked.enumerated().sorted { left, right in
            for (first, second) in zip(left.element.rank, right.element.rank) where first != second {
                return first > second
            }
            return left.offset < right.offset
        }
        for (_, member) in sorted { reader.draft.add(member.route) }
        return reader.draft
    }

    /// The objects of a document: itself, or the members of a list.
    private static func items(_ document: ConfigNode) -> [ConfigNode] {
        guard let kind = document["kind"]?.text, kind.hasSuffix("List"), let items = document["items"] else {
            return [document]
        }
        return items.members
    }

    private mutating func nameOther(_ object: ConfigNode) {
        let kind = object["kind"]?.text ?? "a document without kind"
        guard !["Ingress", "HTTPRoute", "Gateway", "Service", "Secret"].contains(kind) else { return }
        let shown = "\(kind) \(Self.name(of: object))"
        switch kind {
        case "IngressClass", "GatewayClass", "Namespace", "ReferenceGrant", "Deployment", "StatefulSet", "DaemonSet",
            "Pod",
            "ServiceAccount", "ConfigMap", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Job", "CronJob",
            "PersistentVolumeClaim", "HorizontalPodAutoscaler", "PodDisruptionBudget", "Certificate", "Issuer",
            "ClusterIssuer":
            draft.skip(object.location, shown, "it stays with Kubernetes")
        default: draft.note(object.location, shown, "this kind has no counterpart")
        }
    }

    // MARK: Objects

    /// The name of an object.
    static func name(of object: ConfigNode) -> String { object["metadata"]?["name"]?.text ?? "" }

    /// The namespace of an object; empty if it is not written.
    static func namespace(of object: ConfigNode) -> String { object["metadata"]?["namespace"]?.text ?? "" }

    /// The endpoint of a service of Kubernetes; `nil` if the port cannot be told.
    mutating func url(
        _ name: String, port: ConfigNode?, namespace: String, scheme: String, at place: SourceLocation
    ) -> String? {
        guard HostText.isName(name), namespace.isEmpty || HostText.isName(namespace) else { return nil }
        let object = services["\(namespace)/\(name)"]
        var number = port?.text.flatMap { ForeignUnits.number($0, in: 1...65535) }
        if let text = port?.text, number == nil {
            let ports = object?["spec"]?["ports"]?.members ?? []
            number = ports.first { $0["name"]?.text == text }?["port"]?.text.flatMap {
                ForeignUnits.number($0, in: 1...65535)
            }
            if number == nil {
                draft.note(place, "\(name):\(text)", "the Service that gives this port a number is not in the files")
                return nil
            }
        }
        guard let number else { return nil }
        if let external = object?["spec"]?["externalName"]?.text, HostText.isName(external) {
            return "\(scheme)://\(external):\(number)"
        }
        let host = namespace.isEmpty ? name : "\(name).\(namespace).svc.cluster.local"
        return "\(scheme)://\(host):\(number)"
    }

    /// The listener on a port, which is made if it does not exist; returns its index.
    mutating func listener(_ port: Int, isTls: Bool, name: String? = nil, at place: SourceLocation) -> Int {
        let bind = "0.0.0.0:\(port)"
        if let index = draft.listeners.firstIndex(where: { $0.bind == bind }) { return index }
        let wanted = GatewayDraft.nameText(name ?? (port == 80 ? "http" : port == 443 ? "https" : "port-\(port)"))
        let isTaken = draft.listeners.contains { $0.name == wanted }
        var listener = ListenerDraft(name: isTaken ? "\(wanted)-\(port)" : wanted, bind: bind, place: place)
        listener.isTls = isTls
        draft.listeners.append(listener)
        return draft.listeners.count - 1
    }

    /// Adds the files in which the certificate of a secret is expected.
    mutating func addCertificate(_ secret: String, to index: Int, at place: SourceLocation) {
        let name = GatewayDraft.nameText(secret)
        let pair = (cert: "tls/\(name).crt", key: "tls/\(name).key")
        guard !draft.listeners[index].certificates.contains(where: { $0 == pair }) else { return }
        draft.listeners[index].certificates.append(pair)
        draft.note(
            place, "secretName: \(secret)", "put tls.crt and tls.key of the secret into \(pair.cert) and \(pair.key)")
    }
}
