@testable import GatewayWares
@testable import HttpWare

/// Files of approvals: what is accepted is written and read again as the same.
extension Fuzzing {
    public static func approvals(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (_, bytes) = input(start, count) else { return }
        guard let read = try? ApprovalFile.read(bytes) else { return }
        let lines = read.map(\.line).joined()
        require(lines.utf8.split(separator: 0x0a).count == read.count, "an approval has several lines")
        require((try? ApprovalFile.read(Array(lines.utf8))) == read, "not read again: \(lines)")
    }
}
