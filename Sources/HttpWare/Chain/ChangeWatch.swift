/// Detects what a ware changed in a message. An unchanged message costs a few comparisons.
///
/// It relies on `HttpFields` never moving a line: a removed line is marked, a new line is appended. Messages are passed as
/// `inout` only because they are stored in a class: otherwise each look would copy them, at a cost of 50 ns.
struct ChangeWatch {
    private var changes: UInt32 = 0
    private var lines = 0
    private var received = 0
    /// The indices of lines known to be removed, unordered.
    private var removed: [Int] = []
    private var targetChanges: UInt32 = 0
    private var method = HttpMethod.get
    private var status = 0

    /// Records the request's state before a ware sees it.
    mutating func begin(_ request: inout HttpRequest) {
        targetChanges = request.target.changes
        method = request.method
        begin(&request.fields)
    }

    /// Records the response's state before a ware sees it.
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

    /// Adds the request's changes to the trail.
    @inline(__always)
    mutating func look(at request: inout HttpRequest, _ trail: inout WareTrail) {
        if request.fields.changes != changes { note(&request.fields, &trail) }
        if request.target.changes != targetChanges || !request.method.isSurely(method) { note(&request, &trail) }
    }

    /// Adds the response's changes to the trail.
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
        // Fewer lines than before, or lines of another peer: the fields were replaced as a whole.
        if fields.lines.count < lines || fields.receivedCount != received {
            trail.add(.allFields, EmptyCollection())
            return begin(&fields)
        }
        for index in 0..<fields.lines.count {
            let line = fields.lines[index]
            if line.isRemoved {
                guard !removed.contains(index) else { continue }
                removed.append(index)
                // A line that one ware both added and removed was never visible.
                if index < lines { trail.add(.removed, fields.bytes[line.name]) }
            } else if index >= lines {
                trail.add(.added, fields.bytes[line.name])
            }
        }
        changes = fields.changes
        lines = fields.lines.count
    }
}
