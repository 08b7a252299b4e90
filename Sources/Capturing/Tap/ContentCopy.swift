import Glibc
import HttpWare

/// A copy of content, as far as it is kept.
struct ContentCopy {
    private(set) var kept: [UInt8] = []
    private(set) var size = 0
    /// The number of bytes that equal the beginning of the other side; nothing is kept here. `nil` if this copy keeps its own
    /// bytes.
    private var likeOther: Int?
    /// The number of bytes that were not kept for lack of memory.
    var dropped = 0
    /// The digest of content that is longer than its kept part.
    private var digest: RunningDigest256?
    private var sha256: String?

    init(isLikeOther: Bool = false) { likeOther = isLikeOther ? 0 : nil }

    var isLikeOther: Bool { likeOther != nil }
    /// The number of bytes that are kept, here or on the other side.
    var count: Int { likeOther ?? kept.count }

    mutating func add(_ bytes: UnsafeRawBufferPointer, keeping count: Int) {
        digest(bytes, keeping: count, behind: kept)
        kept.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes.prefix(count)))
    }

    /// Adds bytes without keeping them if they equal the other side's. Otherwise adds nothing and returns false.
    mutating func add(_ bytes: UnsafeRawBufferPointer, keeping count: Int, ifLike other: ContentCopy) -> Bool {
        guard let likeOther, other.kept.count - likeOther >= count else { return false }
        let isLike = other.kept.withUnsafeBytes { kept in
            count == 0 || memcmp(kept.baseAddress! + likeOther, bytes.baseAddress!, count) == 0
        }
        guard isLike else { return false }
        digest(bytes, keeping: count, behind: other.kept[..<likeOther])
        self.likeOther = likeOther + count
        return true
    }

    /// Separates the copy from the other side. With `keeps`, the equal bytes are copied here; otherwise they count as
    /// dropped.
    mutating func part(from other: ContentCopy, keeps: Bool) {
        guard let likeOther else { return }
        if keeps { kept = Array(other.kept[..<likeOther]) } else { dropped += likeOther }
        self.likeOther = nil
    }

    private mutating func digest(
        _ bytes: UnsafeRawBufferPointer, keeping count: Int, behind kept: some Collection<UInt8>
    ) {
        size += bytes.count
        if count < bytes.count, digest == nil {
            digest = RunningDigest256()
            Array(kept).withUnsafeBytes { digest?.add($0) }
        }
        digest?.add(bytes)
    }

    /// The memory of the kept bytes.
    var memory: Int { kept.capacity }

    /// Counts bytes that are not kept.
    mutating func pass(_ more: Int) { size += more }

    /// Completes the digest.
    mutating func finish() {
        guard let digest else { return }
        sha256 = digest.finish()
        self.digest = nil
    }

    /// The content for a capture; `other` is the other side, for a copy that equals it.
    func content(beside other: ContentCopy = ContentCopy()) -> CapturedContent {
        var content = CapturedContent()
        content.kept = kept
        if let likeOther {
            content.kept = likeOther == other.kept.count ? other.kept : Array(other.kept.prefix(likeOther))
        }
        content.size = size
        content.dropped = dropped
        content.sha256 = sha256
        return content
    }
}
