@testable import DiskCaching
import HttpCaching
import HttpWare

/// The file of the records of a disk store, which a crash may have cut off and a disk may have damaged.
extension Fuzzing {
    /// The input is a file, as it is or – so that marks and checksums do not hide what is behind them – with right ones for each change
    /// that it begins. However the file comes, the same changes are read. Read changes are written so that they read as the same, and cut off
    /// anywhere it loses its last change only.
    public static func recordJournal(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let file = choice & 1 == 0 ? withChecksums(wire) : wire
        let whole = scanned(file, by: max(file.count, 1))
        let pieces = scanned(file, by: choice >> 1 % 19 + 1)
        require(whole == pieces, "\(whole) and \(pieces)")
        require(whole.end <= file.count && whole.damages <= file.count, "an end beyond the file")
        require((whole.end > RecordJournal.Mark.fileHeadBytes) == !whole.changes.isEmpty, "an end without a change")

        let mark = RecordJournal.Mark()
        let written = mark.fileHead + whole.changes.flatMap { $0.frame(mark) }
        let again = scanned(written, by: max(written.count, 1))
        require(again == Scanned(changes: whole.changes, end: written.count, damages: 0), "\(again)")
        guard let last = whole.changes.last?.frame(mark) else { return }
        let cut = scanned(written.dropLast(choice % last.count + 1), by: 64)
        require(cut.changes.starts(with: whole.changes.dropLast()), "\(cut) of \(whole)")
    }

    private struct Scanned: Equatable {
        var changes: [RecordJournal.Change] = []
        var end = 0
        var damages = 0
    }

    private static func scanned(_ file: some RandomAccessCollection<UInt8>, by size: Int) -> Scanned {
        var scanner = RecordJournal.Scanner()
        var result = Scanned()
        var rest = Array(file)[...]
        while !rest.isEmpty {
            scanner.take(rest.prefix(size), isEnd: false) { result.changes.append($0) }
            rest = rest.dropFirst(size)
        }
        scanner.take([], isEnd: true) { result.changes.append($0) }
        (result.end, result.damages) = (scanner.end, scanner.damages)
        return result
    }

    /// Each change of the file gets the mark, the length of the bytes up to the next change, and their checksum.
    private static func withChecksums(_ wire: [UInt8]) -> [UInt8] {
        let mark = RecordJournal.Mark()
        var file = mark.fileHead
        for (index, part) in wire.split(separator: 0xff, omittingEmptySubsequences: false).enumerated() {
            let rest = Array(part)
            guard index > 0 else {
                file += rest
                continue
            }
            var head = ByteWriter()
            head.bytes = mark.bytes
            head.add(UInt32(rest.count))
            head.add(Checksum.of(rest))
            file += head.bytes + rest
        }
        return file
    }
}
