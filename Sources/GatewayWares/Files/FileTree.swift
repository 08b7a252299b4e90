import HttpWare
import Wares

/// Finds files beneath a folder and remembers them for a second. Shared by loops; each part is safe to use from any
/// thread.
final class FileTree: Sendable {
    /// The options for finding and offering files.
    struct Manner: Sendable {
        var index: [String] = ["index.html"]
        var precompressed: [Files.Precompressed] = [.zst, .br, .gz]
        var browse = false
        var hidden = false
        var cacheControl: String?
        /// Media types by extension, in lower case.
        var types: [String: String] = [:]
        var fallback: FilePlace?
    }

    /// The result of looking up a place.
    enum Finding: Sendable {
        case file(FileEntry)
        /// A folder that the path names without a slash at the end.
        case folder
        /// A folder without an index file, which may be listed.
        case list(OpenedFolder)
        case absent
        case forbidden
        /// The lookup would have to wait for the disk.
        case wouldWait
        /// The lookup failed with this `errno`.
        case failed(Int32)
    }

    let manner: Manner
    /// `nil` if the configuration is only described, or is invalid.
    private let root: OpenedFolder?
    let table = FileTable()

    /// The threads that read files not held in memory.
    static let readers = OffloadQueue(name: "httpware.files", threads: 4, most: 512)
    /// The time after which a file is checked again, in nanoseconds.
    private static let fresh: Int64 = 1_000_000_000
    /// The fallback's key. No request has it, because paths are never empty.
    private static let fallbackKey = ""

    init(_ root: OpenedFolder?, _ manner: Manner) {
        self.root = root
        self.manner = manner
    }

    /// The file under the key, if it was checked within the last second.
    func fresh(_ key: String, at now: Int64) -> FileEntry? {
        guard let held = table.held(key), now - held.lookedAt < FileTree.fresh else { return nil }
        return held.entry
    }

    /// Finds the file at a place, or else the fallback. If `waits` is true it may wait for the disk, so it must not run
    /// on a loop.
    func find(_ place: FilePlace, _ key: String, at now: Int64, _ time: WallTime, waits: Bool) -> Finding {
        let finding = remembered(place, key, at: now, time, waits: waits)
        guard case .absent = finding, let fallback = manner.fallback else { return finding }
        if let entry = fresh(FileTree.fallbackKey, at: now) { return .file(entry) }
        return remembered(fallback, FileTree.fallbackKey, at: now, time, waits: waits)
    }

    private func remembered(
        _ place: FilePlace, _ key: String, at now: Int64, _ time: WallTime, waits: Bool
    ) -> Finding {
        let known = table.held(key)?.entry
        let finding = look(place, known, time, waits: waits)
        switch finding {
        case .file(let entry): table.remember(entry, key, at: now)
        case .wouldWait: break
        default: if known != nil { table.forget(key) }
        }
        return finding
    }

    private func look(_ place: FilePlace, _ known: FileEntry?, _ time: WallTime, waits: Bool) -> Finding {
        guard let root else { return .absent }
        if place == .unslashedRoot { return .folder }
        guard place.isFolder else { return file(place.path, known, time, waits: waits) }
        for name in manner.index {
            switch file(place.file(name), known, time, waits: waits) {
            case .absent, .folder: continue
            case let finding: return finding
            }
        }
        guard manner.browse else { return .absent }
        switch root.find(place.path.isEmpty ? [0x2e] : place.path, waits: waits) {
        case .folder(let folder): return .list(folder)
        case .file, .unchanged, .absent: return .absent
        case .forbidden: return .forbidden
        case .wouldWait: return .wouldWait
        case .failed(let code): return .failed(code)
        }
    }

    /// The file at that path, with its siblings.
    private func file(_ path: [UInt8], _ known: FileEntry?, _ time: WallTime, waits: Bool) -> Finding {
        let whole: KnownFile
        switch open(path, known?.whole.file, waits: waits) {
        case .success(let file): whole = file
        case .failure(let other): return other.finding
        }
        var coded: [(coding: ContentCoding, file: KnownFile)] = []
        for sibling in manner.precompressed {
            let former = known?.coded.first { $0.coding == sibling.coding }?.offer.file
            switch open(path + ".\(sibling.rawValue)".utf8, former, waits: waits) {
            case .success(let file): coded.append((sibling.coding, file))
            case .failure(let other):
                // A sibling that cannot be read is ignored.
                if case .wouldWait = other.finding { return .wouldWait }
            }
        }
        if let known, known.whole.file === whole, known.coded.count == coded.count,
            zip(known.coded, coded).allSatisfy({ $0.offer.file === $1.file })
        {
            return .file(known)
        }
        return .file(
            FileEntry(
                whole: whole, coded: coded, type: mediaType(path), cacheControl: manner.cacheControl, now: time))
    }

    private struct Other: Error {
        let finding: Finding
    }

    private func open(_ path: [UInt8], _ former: KnownFile?, waits: Bool) -> Result<KnownFile, Other> {
        guard let root else { return .failure(Other(finding: .absent)) }
        let former = former?.path == path ? former : nil
        let other: Finding
        switch root.find(path, waits: waits, known: former?.status) {
        case .file(let file):
            do {
                if let known = try KnownFile(file, path, waits: waits) { return .success(known) }
                other = .wouldWait
            } catch {
                other = .failed(error.code)
            }
        case .unchanged:
            if let former { return .success(former) }
            other = .absent
        case .folder: other = .folder
        case .absent: other = .absent
        case .forbidden: other = .forbidden
        case .wouldWait: other = .wouldWait
        case .failed(let code): other = .failed(code)
        }
        return .failure(Other(finding: other))
    }

    private func mediaType(_ path: [UInt8]) -> String {
        let name = String(decoding: path.split(separator: 0x2f).last ?? [], as: UTF8.self)
        if !manner.types.isEmpty, let dot = name.lastIndex(of: "."),
            let type = manner.types[name[name.index(after: dot)...].lowercased()]
        {
            return type
        }
        return LoadedFile.mediaType(ofName: name).map { "\($0)" } ?? "application/octet-stream"
    }
}
