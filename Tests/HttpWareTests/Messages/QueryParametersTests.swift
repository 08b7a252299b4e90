import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct QueryParametersTests {
    @Test(arguments: [
        ("a=1", "1"), ("b=2&a=1", "1"), ("a", ""), ("a=", ""), ("a=1=2", "1=2"), ("%61=%31", "1"), ("a=x%20y", "x y"),
        ("a=x+y", "x y"), ("a=x%2By", "x+y"), ("a=1%26b%3D2", "1&b=2"), ("a=%E4%B8%AD", "中"), ("a=%e4%b8%ad", "中"),
        ("a=%zz", "%zz"), ("a=%4", "%4"), ("a=%", "%"), ("a=%2541", "%41"), ("&&a=1&", "1"), ("a=0&a=1", "1"),
    ])
    func `name and value are compared decoded`(query: String, value: String) throws {
        #expect(try isThere("a", value, in: query))
    }

    @Test(arguments: [
        ("a=1", "2"), ("A=1", "1"), ("ab=1", "1"), ("b=a=1", "1"), ("a=x y", "x+y"), ("a=%2541", "A"), ("", ""),
        ("=1", "1"),
        ("a=10", "1"), ("a=1", "10"), ("a%3D1", ""), ("a%261", ""),
    ])
    func `another name or value is another`(query: String, value: String) throws {
        #expect(try !isThere("a", value, in: query))
    }

    @Test func `a regular expression sees the decoded bytes`() throws {
        #expect(try isThere("a", "~^x y$", in: "a=x%20y"))
        #expect(try isThere("a", #"~^\xff$"#, in: "a=%ff"))
        #expect(try !isThere("a", "~%", in: "a=x%20y"))
        #expect(try isThere("a", "~^$", in: "a"))
    }

    @Test func `a name that has to be encoded can be asked for`() throws {
        #expect(try isThere("filter[name]", "é", in: "filter%5Bname%5D=%C3%A9"))
        #expect(try isThere("a b", "1", in: "a+b=1"))
        #expect(try isThere("", "1", in: "=1"))
    }

    private func isThere(_ name: String, _ value: String, in query: String) throws -> Bool {
        let bytes = Array("/?\(query)".utf8)
        var time = PatternTime()
        return try QueryParameters(bytes, 2..<bytes.count).contains(
            name, [ValueMatch(optionText: value)], within: &time)
    }
}
