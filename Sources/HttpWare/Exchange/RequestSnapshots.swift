/// The request as it left each ware that may replay, in the order of the wares.
///
/// An unchanged target and unchanged fields need no copy, because the received bytes stay readable. Changed fields are copied
/// into memory that is reused for the next exchange. If they were shared, the next ware that changes them would first have to copy
/// them to new memory.
struct RequestSnapshots {
    struct Snapshot {
        /// The ware's index among the middlewares.
        fileprivate(set) var index: Int
        /// Set if target and fields were as received: `fields` and `target` are then meaningless.
        fileprivate var reception: HttpFields.Reception?
        fileprivate var fields = HttpFields()
        fileprivate var target = RequestTarget()
        /// The other parts of the request that a ware can change.
        fileprivate(set) var content = HttpContent.none
        fileprivate var method = HttpMethod.get
        fileprivate var isAuthorityChanged = false
        /// The number of filters that its content had then.
        fileprivate(set) var filters: Int

        /// Restores the request. Returns false if that is impossible: a ware replaced the received message, or
        /// its fields.
        func restore(_ present: inout HttpRequest) -> Bool {
            guard isAtHand(present) else { return false }
            if reception == nil {
                present.fields = fields
                present.target = target
            } else {
                present.fields = present.fields.received
                present.target.restoreReceived()
            }
            present.content = content
            present.method = method
            present.isAuthorityChanged = isAuthorityChanged
            return true
        }

        /// Whether `restore` would succeed.
        func isAtHand(_ present: borrowing HttpRequest) -> Bool {
            reception == nil || present.fields.reception == reception
        }
    }

    private var taken: [Snapshot] = []
    private var count = 0
    /// The highest number in use since the last `clear`.
    private var used = 0

    /// Larger buffers are not kept.
    private static let mostBytes = 16 << 10

    /// Takes a snapshot. It replaces that of the same ware and those of wares further in.
    ///
    /// The request is not changed: as an `inout` argument it need not be copied out of the object that holds it.
    mutating func takeSnapshot(_ index: Int, _ request: inout HttpRequest, filters: Int) {
        while count > 0, taken[count - 1].index >= index { count -= 1 }
        if count == taken.count { taken.append(Snapshot(index: index, filters: filters)) }
        taken[count].takeSnapshot(index, &request, filters: filters)
        count += 1
        used = max(used, count)
    }

    /// The snapshot of the ware at this index; `nil` without one.
    subscript(index: Int) -> Snapshot? { taken[..<count].first { $0.index == index } }

    /// Releases all snapshots, except for the memory of fields.
    mutating func clear() {
        for place in 0..<used { taken[place].forget(keeping: RequestSnapshots.mostBytes) }
        count = 0
        used = 0
    }

    var isEmpty: Bool { used == 0 }
}

extension RequestSnapshots.Snapshot {
    fileprivate mutating func takeSnapshot(_ index: Int, _ request: inout HttpRequest, filters: Int) {
        self.index = index
        self.filters = filters
        // A message that a ware made has no received bytes that identify it.
        if request.fields.receivedCount > 0, request.fields.isAsReceived, request.target.isAsReceived {
            reception = request.fields.reception
        } else {
            reception = nil
            fields.copy(request.fields)
            target = request.target
        }
        content = request.content
        method = request.method
        isAuthorityChanged = request.isAuthorityChanged
    }

    /// Releases everything except the memory of fields, and that too if it is larger than `most`.
    fileprivate mutating func forget(keeping most: Int) {
        if fields.bytes.capacity > most { fields = HttpFields() }
        if !target.bytes.isEmpty { target = RequestTarget() }
        if content.bytes != nil { content = .none }
    }
}
