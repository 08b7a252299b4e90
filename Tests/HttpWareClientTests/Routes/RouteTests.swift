import HttpWareClient
import Testing

@Suite struct RouteTests {
    enum Sort: String, QueryValue { case newest, oldest }

    @Test(arguments: [
        ("a/b", "/x/a%2Fb/y"), ("ä ö", "/x/%C3%A4%20%C3%B6/y"), ("a?b#c", "/x/a%3Fb%23c/y"), ("..a", "/x/..a/y"),
        ("%2e%2e", "/x/%252e%252e/y"), ("a;b,c", "/x/a%3Bb%2Cc/y"),
    ])
    func `a value in a path stays one segment`(value: String, expected: String) {
        let path: RoutePath = "/x/\(value)/y"
        #expect(path.text == expected)
        #expect(path.fault == nil)
    }

    @Test func `a path takes numbers, cases, segments and what is encoded already`() {
        let path: RoutePath = "/x/\(7)/\(Sort.newest)/\(segments: ["a b", "c"])/\(encoded: "d%2Fe?f=g")"
        #expect(path.text == "/x/7/newest/a%20b/c/d%2Fe?f=g")
        #expect(path.fault == nil)
        let isUsable: RoutePath = "/x/\(segments: ["a", ".."])"
        #expect(isUsable.fault != nil)
    }

    @Test func `two values that come together make no dot segment`() {
        let path: RoutePath = "/x/\(".")\(".")/y"
        #expect(path.fault != nil)
    }

    @Test func `query items come from arrays, optionals and cases, in order`() {
        let items: QueryItems = [
            "tag": ["a", "b c"], "page": nil as Int?, "sort": Sort.oldest, "size": 20, "all": true, "ratio": 0.5,
        ]
        #expect(items.query == "tag=a&tag=b%20c&sort=oldest&size=20&all=true&ratio=0.5")
        #expect(QueryItems(items.items.filter { $0.name == "tag" }).form == "tag=a&tag=b+c")
    }

    @Test func `query items come from a Codable value`() throws {
        struct Filter: Encodable {
            struct Range: Encodable { var from: Int, to: Int? }
            var text = "a&b"
            var tags = ["x", "y"]
            var range = Range(from: 1, to: nil)
            var isOpen: Bool? = true
            var nothing: String?
            var ids: Set<Int> = [4]
        }
        #expect(try QueryItems(encoding: Filter()).query == "text=a%26b&tags=x&tags=y&range.from=1&isOpen=true&ids=4")
        #expect(throws: EncodingError.self) { try QueryItems(encoding: 7) }
    }

    @Test func `makeRequest can be overridden, and starts from the default`() throws {
        struct Special: Route {
            var path: RoutePath { "/special" }
            func makeRequest(in service: ServiceDefinition) throws -> Request<NoContent> {
                var request = try defaultRequest(in: service)
                request.headers.append("X-Special", "yes")
                request.content = .form(["a": "b c"])
                return request
            }
        }
        let request = try Special().makeRequest(in: ServiceDefinition(baseURL: "http://localhost"))
        #expect(request.content.contentType == "application/x-www-form-urlencoded")
        #expect(request.content.length == 5)
        #expect(request.name == "Special")
    }

    @Test func `a route's values are its initialiser, and its path cannot lead elsewhere`() throws {
        // `GetTodo()` does not compile: there is no todo without an id.
        let service = ServiceDefinition(baseURL: "http://localhost")
        #expect(try GetTodo(id: 7).makeRequest(in: service).path.text == "/todos/7")
        struct Named: Route {
            var name: String
            var path: RoutePath { "/named/\(name)" }
        }
        #expect(
            try Named(name: "../users?admin=1").makeRequest(in: service).path.text == "/named/..%2Fusers%3Fadmin%3D1")
    }

    @Test func `a request is a few lines`() throws {
        // The five lines of GetTodo, in Support/Todo.swift.
        let request = try GetTodo(id: 7).makeRequest(in: ServiceDefinition(baseURL: "http://localhost"))
        #expect(request.method == .get)
        #expect(request.path == "/todos/7")
        #expect(request.authentication == .required)
    }
}
