/// A request as it was when it left each ware that may replay, in the order of the wares.
///
/// The fields of each are copied into memory that stays for the next exchange. Were they shared, the next ware that changes
/// them would have to move them to new memory first.
struct RequestSnapshots {
    struct Snapshot {
        /// The ware's place among the middlewares.
        fileprivate(set) var index: Int
        fileprivate(set) var request: HttpRequest
        /// How many filters its content had then.
        fileprivate(set) var filters: Int
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
    mutating func take(_ index: Int, _ request: inout HttpRequest, filters: Int) {
        while count > 0, taken[count - 1].index >= index { count -= 1 }
        if count == taken.count { taken.append(Snapshot(index: index, request: HttpRequest(), filters: filters)) }
        taken[count].index = index
        taken[count].filters = filters
        taken[count].request.copy(&request)
        count += 1
        used = max(used, count)
    }

    /// That of the ware at this place.
    subscript(index: Int) -> Snapshot? { taken[..<count].first { $0.index == index } }

    /// Lets all go, but for the memory of fields.
    mutating func clear() {
        for place in 0..<used { taken[place].request.forget(keeping: RequestSnapshots.mostBytes) }
        count = 0
        used = 0
    }

    var isEmpty: Bool { used == 0 }
}

extension HttpRequest {
    /// Becomes the same as another, with fields of its own, in the memory that it has.
    fileprivate mutating func copy(_ other: inout HttpRequest) {
        fields.copy(other.fields)
        // Each by itself: to copy all and put the own fields back counts every reference twice.
        method = other.method
        receivedMethod = other.receivedMethod
        version = other.version
        content = other.content
        target = other.target
        expectsContinue = other.expectsContinue
        upgrade = other.upgrade
        acceptsTrailers = other.acceptsTrailers
        proxyAuthorization = other.proxyAuthorization
        isPersistent = other.isPersistent
        isAuthorityChanged = other.isAuthorityChanged
    }

    /// Lets go of all but the memory of fields, and of that if it is larger.
    fileprivate mutating func forget(keeping most: Int) {
        if fields.bytes.capacity > most { fields = HttpFields() }
        target = RequestTarget()
        if content.bytes != nil { content = .none }
        if upgrade != nil { upgrade = nil }
        if proxyAuthorization != nil { proxyAuthorization = nil }
    }
}
