/// A request as it was when it left each ware that may replay, in the order of the wares.
///
/// A target and fields that are as they were received then need no copy: what was received stays readable. Other fields are copied
/// into memory that stays for the next exchange. Were they shared, the next ware that changes them would have to move them to new
/// memory first.
struct RequestSnapshots {
    struct Snapshot {
        /// The ware's place among the middlewares.
        fileprivate(set) var index: Int
        /// Target and fields were as they had been received: `fields` and `target` are of no meaning.
        fileprivate var reception: HttpFields.Reception?
        fileprivate var fields = HttpFields()
        fileprivate var target = RequestTarget()
        /// What else of the request a ware can change.
        fileprivate(set) var content = HttpContent.none
        fileprivate var method = HttpMethod.get
        fileprivate var isAuthorityChanged = false
        /// How many filters its content had then.
        fileprivate(set) var filters: Int

        /// Makes the request what it was. Answers false where it cannot be had any more: a ware put another message, or
        /// its fields, in place of what was received.
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

        /// Whether `restore` would do it.
        func isAtHand(_ present: borrowing HttpRequest) -> Bool {
            reception == nil || present.fields.reception == reception
        }
    }

    private var taken: [Snapshot] = []
    private var count = 0
    /// How many were in use since all were let go.
    private var used = 0

    /// Larger buffers do not stay.
    private static let mostBytes = 16 << 10

    /// Takes one, in place of that of the same ware and of those further in.
    ///
    /// The request is not changed: given as `inout` it need not be copied out of the object that holds it.
    mutating func takeSnapshot(_ index: Int, _ request: inout HttpRequest, filters: Int) {
        while count > 0, taken[count - 1].index >= index { count -= 1 }
        if count == taken.count { taken.append(Snapshot(index: index, filters: filters)) }
        taken[count].takeSnapshot(index, &request, filters: filters)
        count += 1
        used = max(used, count)
    }

    /// That of the ware at this place.
    subscript(index: Int) -> Snapshot? { taken[..<count].first { $0.index == index } }

    /// Lets all go, but for the memory of fields.
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
        // A message that a ware made has received nothing by which it could be told from others.
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

    /// Lets go of all but the memory of fields, and of that if it is larger.
    fileprivate mutating func forget(keeping most: Int) {
        if fields.bytes.capacity > most { fields = HttpFields() }
        if !target.bytes.isEmpty { target = RequestTarget() }
        if content.bytes != nil { content = .none }
    }
}
