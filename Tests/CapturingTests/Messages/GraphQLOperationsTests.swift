import Capturing
import Testing

@Suite struct GraphQLOperationsTests {
    private func names(
        _ content: String, type: String? = "application/json", method: String = "POST",
        url: String = "https://a.test/api"
    ) -> [String] {
        GraphQLOperations.names(method: method, url: url, mediaType: type, content: Array(content.utf8))
    }

    @Test func `operations of JSON are named by operationName or by their document`() {
        #expect(names("{\"query\":\"query A { a } query B { b }\",\"operationName\":\"B\"}") == ["B"])
        #expect(
            names("{\"operationName\":null,\"query\":\"query A($x: Int = 1) @d { a } mutation B { b }\"}") == [
                "A", "B",
            ])
        #expect(names("{\"query\":\"{ a(text: \\\"query No {\\\") { query } }\"}") == [])
        #expect(names("{\"query\":\"# query No\\n fragment F on T { x } subscription S { s }\"}") == ["S"])
    }

    @Test func `batches have the names of all`() {
        #expect(
            names("[{\"query\":\"query A {a}\"},{\"query\":\"mutation B {b}\"},{\"query\":\"query A {a}\"}]") == [
                "A", "B",
            ])
    }

    @Test func `a document that was not captured whole still has its name`() {
        #expect(names("{\"query\":\"query A { a }\",\"variables\":{\"file\":\"abc") == ["A"])
        #expect(names("{\"operationName\":\"Long\",\"variables\":{},\"query\":\"query Long { a }\"") == ["Long"])
    }

    @Test func `other requests have none`() {
        #expect(names("{\"query\":\"cheap shoes\"}").isEmpty)
        #expect(names("{\"query\":{\"match\":1},\"operationName\":\"X\"}").isEmpty)
        #expect(names("{\"query\":\"query\"}").isEmpty)
        #expect(names("query A {a}", type: "text/plain").isEmpty)
        #expect(names("[]").isEmpty && names("").isEmpty && names("{\"query\":").isEmpty)
        #expect(names("", method: "GET", url: "https://a.test/search?query=shoes&operationName=x").isEmpty)
    }

    @Test func `persisted queries are named by operationName`() {
        #expect(names("{\"operationName\":\"P\",\"extensions\":{\"persistedQuery\":{\"version\":1}}}") == ["P"])
        #expect(names("{\"operationName\":\"P\"}", url: "https://a.test/graphql") == ["P"])
    }

    @Test func `a GET and a document as content are read`() {
        #expect(names("", type: nil, method: "GET", url: "https://a.test/graphql?query=query%20Q%20%7Ba%7D#x") == ["Q"])
        #expect(
            names("query+A", type: nil, method: "GET", url: "https://a.test/q?query=query+A+%7Ba%7D&operationName=A")
                == ["A"])
        #expect(names("query D { a }", type: "application/graphql") == ["D"])
    }

    @Test(arguments: ["\n", "\r\n"])
    func `the part operations of a form is read`(end: String) {
        let content = [
            "--xyz", "Content-Disposition: form-data; name=\"map\"", "", "{}", "--xyz",
            "Content-Disposition: form-data; name=\"operations\"", "", "{\"query\":\"mutation Upload { a }\",",
            "\"variables\":{}}",
            "--xyz", "Content-Disposition: form-data; name=\"0\"; filename=\"x\"", "", "query No {a}", "--xyz--", "",
        ].joined(separator: end)
        #expect(names(content, type: "multipart/form-data; boundary=xyz") == ["Upload"])
    }
}
