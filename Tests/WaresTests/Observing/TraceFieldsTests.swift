import Testing

@testable import Wares

@Suite struct TraceFieldsTests {
    private static let many = (1...32).map { "k\($0)=v" }.joined(separator: ",")

    @Test(
        arguments: [
            (["congo=t61rcWkgMzE"], true), (["rojo=00f067aa0ba902b7,congo=t61"], true), (["a=1", "b=2"], true),
            (["a=1 , \tb=2"], true),
            (["a=1,,b=2,"], true), (["fw529a3039@dt=FfAB"], true), (["0a_-*/@=!~ +"], true), (["a=1,a=2"], true),
            ([many], true),
            (["a=\(String(repeating: "x", count: 256))"], true), (["\(String(repeating: "k", count: 256))=1"], true),
            ([many, "k33=v"], false), (["a"], false), (["=1"], false), (["a="], false), (["A=1"], false),
            (["_a=1"], false), (["a b=1"], false),
            (["a=1=2"], false), (["a=\u{7f}"], false), (["a=ü"], false),
            (["a=\(String(repeating: "x", count: 257))"], false),
            (["\(String(repeating: "k", count: 257))=1"], false), ([""], false), ([","], false), ([], false),
        ] as [([String], Bool)])
    func `tracestate is a list of keys with values, of no more than 32 - W3C Trace Context §3.3.1`(
        lines: [String], expected: Bool
    ) {
        #expect(TraceFields.isValidState(lines) == expected)
    }

    @Test(
        arguments: [
            (["a=1,b=2;meta"], true), ([String(repeating: "a=1,", count: 64)], true),
            ([String(repeating: "a=1,", count: 65)], false),
            (["a=\(String(repeating: "x", count: 8190))"], true), (["a=\(String(repeating: "x", count: 8191))"], false),
            ([""], false),
        ] as [([String], Bool)])
    func `baggage is passed on up to 64 members and 8192 bytes - W3C Baggage §3.3.2`(lines: [String], expected: Bool) {
        #expect(TraceFields.isBaggage(lines) == expected)
    }
}
