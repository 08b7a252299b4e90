#if HTTPWARE_BENCH
    import HttpWareClient

    /// The content that the clients request: 1 KiB of JSON.
    protocol BenchModel: Codable, Sendable {
        static var path: RoutePath { get }
        static var content: [UInt8] { get }
    }

    /// A list of many small values, whose decoding takes longer than the rest of the exchange.
    struct BenchPage: BenchModel {
        struct Item: Codable, Sendable {
            var id: Int
            var name: String
            var isDone: Bool
            var weight: Double
            var tags: [String]
        }

        var page: Int
        var owner: String
        var items: [Item]

        static let path: RoutePath = "/page"
        static let content: [UInt8] = {
            let items = (1...9).map {
                Item(
                    id: 1000 + $0, name: "the item with the number \($0)", isDone: $0 % 3 == 0,
                    weight: Double($0) + 0.25, tags: ["green", "tall", "n\($0)"])
            }
            return (try? JsonCoder().encode(BenchPage(page: 7, owner: "ada@example.com", items: items))) ?? []
        }()
    }

    /// A note: a long text with a few small values.
    struct BenchNote: BenchModel {
        var id: Int
        var title: String
        var isDone: Bool
        var text: String

        static let path: RoutePath = "/note"
        static let content: [UInt8] = {
            let text = String(repeating: "the work of the day, ", count: 45)
            let note = BenchNote(id: 7, title: "a note of some length", isDone: false, text: text)
            return (try? JsonCoder().encode(note)) ?? []
        }()
    }

    /// The route to a model for `HttpManager`.
    struct GetModel<Response: BenchModel>: Route {
        var path: RoutePath { Response.path }
    }
#endif
