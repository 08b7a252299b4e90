import Capturing
import HttpWare

extension AdminEndpoint {
    /// The temporary rules.
    static func rules(_ subject: AdminSubject) -> [AdminEndpoint] {
        guard let rules = subject.rules else { return [] }
        let reader = RuleReader(folder: subject.rulesDir, hasToken: subject.hasToken)
        return [
            AdminEndpoint(path: "/v1/rules", access: .known) { _, exchange in
                let now = exchange.wallNow
                return .abort(
                    with: .json(
                        .object([("rules", .list(rules.active.map(\.rule).filter { $0.until > now }.map(\.json)))])))
            },
            AdminEndpoint(path: "/v1/rules", access: .known, isWrite: true) { request, _ in
                .wait { _, exchange in .abort(with: await add(request, rules, reader, exchange, subject)) }
            },
            AdminEndpoint(path: "/v1/rules/*", access: .known) { request, _ in
                found(request, rules) { .json($0.rule.json) }
            },
            AdminEndpoint(path: "/v1/rules/*/yaml", access: .known) { request, _ in
                found(request, rules) { rule in
                    do throws(FilterFault) {
                        return .json(.object([("yaml", .text(try SavedRule.yaml(rule)))]))
                    } catch {
                        return .problem(.conflict, "filter: \(error)", column: error.column)
                    }
                }
            },
            AdminEndpoint(path: "/v1/rules/*", access: .known, isDelete: true) { request, _ in
                .wait { _, _ in
                    guard let id = Int(request.argument), await rules.remove(id) else {
                        return .abort(with: .problem(.notFound, "there is no rule with this id"))
                    }
                    return .abort(with: HttpResponse(.noContent))
                }
            },
        ]
    }

    private static func found(
        _ request: AdminRequest, _ rules: GatewayRules, _ answer: (GatewayRules.Active) -> HttpResponse
    ) -> Verdict {
        guard let id = Int(request.argument), let rule = rules.active.first(where: { $0.rule.id == id }) else {
            return .abort(with: .problem(.notFound, "there is no rule with this id"))
        }
        return .abort(with: answer(rule))
    }

    private static func add(
        _ request: AdminRequest, _ rules: GatewayRules, _ reader: RuleReader, _ exchange: Exchange,
        _ subject: AdminSubject
    ) async -> HttpResponse {
        let now = exchange.wallNow
        await rules.prune(at: now)
        do {
            let asked = try reader.read(request.content)
            guard let rule = try await rules.add({ try reader.build(asked, id: $0, now: now) }) else {
                return .problem(.conflict, "there are \(GatewayRules.most) rules; remove one")
            }
            subject.loop.execute { [loop = subject.loop, time = asked.time] in
                loop.schedule(after: time + .milliseconds(10)) {
                    let now = loop.wallNow()
                    Task(executorPreference: loop) { await rules.prune(at: now) }
                }
            }
            var response = HttpResponse.json(rule.json)
            response.status = .created
            return response
        } catch let mistake as RuleReader.Mistake {
            return .problem(mistake.status, mistake.detail, column: mistake.column)
        } catch {
            return .problem(.badRequest, "\(error)")
        }
    }
}

extension HttpResponse {
    /// A problem (RFC 9457) with the column of an error in a filter, from 1.
    static func problem(_ status: HttpStatus, _ detail: String, column: Int?) -> HttpResponse {
        .problem(status, detail, also: column.map { [("column", .number($0))] } ?? [])
    }
}
