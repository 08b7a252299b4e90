/// Finds out what a ware changed in a message. What it left as it was costs a few comparisons.
///
/// It relies on `HttpFields` never moving a line: a removed one is marked, a new one stands behind the others. Messages come as
/// `inout` only because they are stored in a class: else each look would copy them, at 50 ns.
struct ChangeWatch {
    private var changes: UInt32 = 0
    private var lines = 0
    private var received = 0
    /// The lines that are known to be removed, in no order.
    private var removed: [Int] = []
    private var targetChanges: UInt32 = 0
    private var method = HttpMethod.get
    private var status = 0

    /// Takes the request as it is before a ware sees it.
    mutating func begin(_ request: inout HttpRequest) {
        targetChanges = request.target.changes
        method = request.method
        begin(&request.fields)
    }

    /// Takes the response as it is before a ware sees it.
    mutating func begin(_ response: inout HttpResponse) {
        status = response.status.code
        begin(&response.fields)
    }

    private mutating func begin(_ fields: inout HttpFields) {
        changes = fields.changes
        lines = fields.lines.count
        received = fields.receivedCount
        if !removed.isEmpty { removed.removeAll(keepingCapacity: true) }
        for index in 0..<lines where fields.lines[index].isRemoved { removed.append(index) }
    }

    /// Notes what is not as it was.
    @inline(__always)
    mutating func look(at request: inout HttpRequest, _ trail: inout WareTrail) {
        if request.fields.changes != changes { note(&request.fields, &trail) }
        if request.target.changes != targetChanges || !request.method.isSurely(method) { note(&request, &trail) }
    }

    /// Notes what is not as it was.
    @inline(__always)
    mutating func look(at response: inout HttpResponse, _ trail: inout WareTrail) {
        if response.fields.changes != changes { note(&response.fields, &trail) }
        if response.status.code != status {
            status = response.status.code
            trail.add(.status, EmptyCollection(), number: status)
        }
    }

    @inline(never)
    private mutating func note(_ request: inout HttpRequest, _ trail: inout WareTrail) {
        if request.method != method {
            method = request.method
            trail.add(.method, method.name.utf8)
        }
        if request.target.changes != targetChanges {
            targetChanges = request.target.changes
            let host = request.isAuthorityChanged ? request.authority.map { "//\($0)" } ?? "" : ""
            trail.add(.target, (host + request.upstreamTarget).utf8)
        }
    }

    @inline(never)
    private mutating func note(_ fields: inout HttpFields, _ trail: inout WareTrail) {
        // Fewer lines than there were, or not those of the peer: these are other fields.
        if fields.lines.count < lines || fields.receivedCount != received {
            trail.add(.allFields, EmptyCollection())
            return begin(&fields)
        }
        for index in 0..<fields.lines.count {
            let line = fields.lines[index]
            if line.isRemoved {
                guard !removed.contains(index) else { continue }
                removed.append(index)
                // What came and went again within one ware was never seen.
                if index < lines { trail.add(.removed, fields.bytes[line.name]) }
            } else if index >= lines {
                trail.add(.added, fields.bytes[line.name])
            }
        }
        changes = fields.changes
        lines = fields.lines.count
    }
}
