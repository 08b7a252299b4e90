import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct ResponsePagesTests {
    private func manager(_ answer: @escaping @Sendable (HttpRequest) -> (titles: String, link: String?)) -> (
        HttpManager, ScriptedClient
    ) {
        let client = ScriptedClient()
        client.answer(.get, "/todos") { request in
            let (title, link) = answer(request)
            var response = HttpResponse.json(#"[{"id":1,"title":"\#(title)","isDone":false}]"#)
            if let link { try? response.fields.append(.link, link) }
            return .success(response)
        }
        return (HttpManager(service: "https://api.example.com".service, client: client), client)
    }

    @Test func `pages follow the links of responses`() async throws {
        let (manager, client) = manager { request in
            switch request.query {
            case "tag=a": ("one", "</todos?cursor=2%2F3>; rel=\"next\"")
            case "cursor=2%2F3": ("two", "<https://api.example.com/todos?cursor=x>; rel=next, </>; rel=first")
            default: ("three", nil)
            }
        }
        var titles: [String] = []
        for try await page in manager.pages(of: ListTodos(tags: ["a"])) { titles += page.model.map(\.title) }
        #expect(titles == ["one", "two", "three"])
        #expect(client.requests.map { $0.query } == ["tag=a", "cursor=2%2F3", "cursor=x"])
    }

    @Test func `pages are asked for only when they are taken`() async throws {
        let (manager, client) = manager { ("\($0.query ?? "")", "</todos?page=\(($0.query?.count ?? 0))x>; rel=next") }
        for try await _ in manager.pages(of: ListTodos()) where client.requests.count == 2 { break }
        #expect(client.requests.count == 2)
    }

    @Test func `a route makes the one that follows`() async throws {
        let (manager, client) = manager { ($0.query ?? "", nil) }
        var pages = 0
        for try await page in manager.pages(
            of: ListTodos(page: 1),
            next: { page in
                page.request.query == "page=3" ? nil : ListTodos(page: page.request.query == "page=1" ? 2 : 3)
            })
        {
            pages += 1
            #expect(page.model.first?.title == "page=\(pages)")
        }
        #expect(pages == 3 && client.requests.count == 3)
    }

    @Test(arguments: [
        ("</todos>; rel=next", "the page leads to itself, or to one before it", 2),
        ("<https://evil.example/todos>; rel=next", "is at another origin", 1),
        ("<http://api.example.com/todos>; rel=next", "is at another origin", 1),
        ("<ftp://api.example.com/todos>; rel=next", "has no valid URL", 1),
        ("<http://>; rel=next", "has no valid URL", 1),
    ])
    func `a link that leads in circles or elsewhere is refused`(link: String, reason: String, calls: Int) async throws {
        let (manager, client) = manager { _ in ("x", link) }
        let error = await #expect(throws: HttpError.self) {
            for try await _ in manager.pages(of: ListTodos()) {}
        }
        #expect(error?.reason.contains(reason) == true, "\(error as Any)")
        #expect(client.requests.count == calls)
    }
}
