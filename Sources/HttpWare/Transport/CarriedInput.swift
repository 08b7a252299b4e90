/// Received bytes that wait for more: a part of a head, or what arrived while reading was paused.
///
/// A byte is copied when it begins to wait, and again only when bytes before it were used. So a head that arrives byte by byte costs
/// as much copying as one that arrives in two pieces.
struct CarriedInput {
    private var bytes: [UInt8] = []
    /// The number of bytes that were copied so far.
    private(set) var copied = 0

    var isEmpty: Bool { bytes.isEmpty }
    var count: Int { bytes.count }

    /// Keeps bytes that were not used. No bytes wait yet.
    mutating func hold(_ unused: Slice<UnsafeRawBufferPointer>) {
        copied &+= unused.count
        bytes.append(contentsOf: unused)
    }

    /// All bytes, the new ones last. They do not wait here until `putBack`, so that their array is never copied.
    mutating func take(adding new: UnsafeRawBufferPointer?) -> [UInt8] {
        if let new {
            copied &+= new.count
            bytes.append(contentsOf: new)
        }
        let all = bytes
        bytes = []
        return all
    }

    /// Keeps those of the taken bytes that were not used.
    mutating func putBack(_ taken: consuming [UInt8], used: Int) {
        guard used < taken.count else { return }
        if used > 0 {
            copied &+= taken.count - used
            taken.removeFirst(used)
        }
        bytes = taken
    }

    mutating func discard() { bytes = [] }
}
