import Capturing
import HttpWare

extension AdminEndpoint {
    /// Captures as an archive (HAR 1.2), and archives as captures.
    static func archives(_ store: CaptureStore) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/har", access: .known) { request, _ in
                let secrets = request.parameter("secrets") ?? "false"
                guard secrets == "true" || secrets == "false" else {
                    return .abort(with: .problem(.badRequest, "secrets is true or false"))
                }
                return filtered(request) { filter in
                    HttpResponse(
                        .ok, fields: ["Content-Type": "application/json"],
                        source: HarSource(store, filter, withSecrets: secrets == "true"))
                }
            },
            AdminEndpoint(path: "/v1/har", access: .known, isWrite: true, mostContent: mostImported) { request, _ in
                let content = request.content
                return .wait { _, _ in .abort(with: await apart { take(content, store) }) }
            },
        ]
    }

    /// The maximum size of an imported archive, in bytes.
    private static let mostImported = 64 << 20

    private static func take(_ content: [UInt8], _ store: CaptureStore) -> HttpResponse {
        do throws(HarReader.Refusal) {
            let archive = try HarReader(content)
            let ids = store.take(archive.exchanges)
            return .json(
                .object([
                    ("imported", .number(ids.count)), ("ids", .list(ids.map { .text(String($0)) })),
                    ("warnings", .list(archive.warnings.map(Json.text))),
                ]))
        } catch {
            return .problem(.badRequest, error.description)
        }
    }
}
