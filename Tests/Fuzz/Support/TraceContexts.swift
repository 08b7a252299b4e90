@testable import HttpWare
@testable import Wares

/// Fields of requests that wares read by themselves: where a request stands in its trace, and which codings its client takes.
extension Fuzzing {
    public static func traceContext(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (_, wire) = input(start, count) else { return }
        let context = wire.withUnsafeBytes { TraceContext($0) }
        if let context {
            let text = Array(context.text.utf8)
            require(text.count == TraceContext.count, "written in \(text.count) bytes")
            require(text.withUnsafeBytes { TraceContext($0) } == context, "not what was written")
            require(text[3..<52].elementsEqual(wire[3..<52]), "not what was received")
        }
        let lines = wire.split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
        if TraceFields.isValidState(lines) {
            require(TraceFields.isValidState([lines.joined(separator: ",")]), "another one when joined")
        }
        if TraceFields.isBaggage(lines) {
            require(lines.reduce(0) { $0 + $1.utf8.count } <= 8192, "too much baggage is passed on")
        }
        var accepted = AcceptEncoding()
        for line in wire.split(separator: 0x0a) { line.withUnsafeBytes { accepted.add($0) } }
        for coding in ContentCoding.allCases {
            require((0...1000).contains(accepted.weight(of: coding)), "a weight of \(accepted.weight(of: coding))")
        }
        if let best = accepted.best(of: ContentCoding.allCases) {
            require(accepted.weight(of: best) > 0, "\(best) is not acceptable")
        }
    }
}
