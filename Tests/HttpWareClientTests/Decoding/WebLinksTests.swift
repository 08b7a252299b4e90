import Testing

@testable import HttpWareClient

@Suite struct WebLinksTests {
    @Test(
        "RFC 8288 §3: the target of a relation",
        arguments: [
            (["</b>; rel=next"], "/b"), (["</b>;rel=\"next\""], "/b"), (["</b> ; REL = \"prev NEXT\""], "/b"),
            (["</a>; rel=prev, </b>; rel=next"], "/b"), (["</a>; rel=prev", "</b>; rel=next"], "/b"),
            (["</b>; rel=next, </c>; rel=next"], "/b"), (["</b>; title=\"a, \\\"b; rel=x\"; rel=next"], "/b"),
            (["</b>; rel=next; rel=prev"], "/b"), ([",, </b>; rel=next,"], "/b"), (["<b,c;d>; rel=next"], "b,c;d"),
            (["</b>; x; ; rel=next"], "/b"),
            (["</b>; rel=prev; rel=next"], nil), (["</b>"], nil), ([], nil), (["</b; rel=next"], nil),
            (["/b; rel=next"], nil), (["</b>; rel=\"next"], nil), (["</b> x; rel=next"], nil), (["<"], nil),
            (["</a>; rel=x y, </b>; rel=next"], nil), (["</b>; rel=\"next\\"], nil),
        ] as [([String], String?)])
    func target(lines: [String], target: String?) {
        #expect(WebLinks(lines)["next"] == target)
        #expect(WebLinks(lines)["Next"] == target)
    }

    @Test func `the number of links that are read is bounded`() {
        let line = (0..<1000).map { "</\($0)>; rel=r\($0)" }.joined(separator: ", ")
        #expect(WebLinks([line])["r255"] == "/255")
        #expect(WebLinks([line])["r256"] == nil)
    }
}
