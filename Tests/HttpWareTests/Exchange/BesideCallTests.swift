import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct BesideCallTests {
    private func call(_ stage: DriverStage, _ notes: Notes) -> BesideCall {
        let plan = ExchangePlan(chain: .empty, service: stage.driver.plan.service, route: nil)
        let call = BesideCall(
            plan, HttpRequest.make(.get, "http://example.test/copy"), .seconds(5), NotingReceiver(notes))
        call.begin(on: stage.server, stage.driver.exchange.connection)
        return call
    }

    @Test func `it has an exchange of its own, which no limit of background exchanges counts`() async throws {
        let stage = try DriverStage([] as [any Ware])
        let notes = Notes()
        await stage.begin(path: "/own")
        await stage.step { stage in
            _ = call(stage, notes)
            #expect(stage.stream.request?.path == "/copy" && stage.server.backgroundCount == 0)
            stage.stream.respond(text: "abc")
        }
        #expect(notes.all == ["head 200", "content abc", "end true"])
        await stage.step { #expect($0.client.status == nil) }
    }

    @Test func `a cancelled call ends its request, and tells nothing more`() async throws {
        let stage = try DriverStage([] as [any Ware])
        let notes = Notes()
        await stage.begin(path: "/own")
        await stage.step { stage in
            let call = call(stage, notes)
            call.cancel()
            call.cancel()
            #expect(stage.stream.isCancelled)
        }
        #expect(!notes.all.contains { $0.hasPrefix("head") || $0.hasPrefix("content") })
    }

    @Test func `it begins once`() async throws {
        let stage = try DriverStage([] as [any Ware])
        let notes = Notes()
        await stage.begin(path: "/own")
        await stage.step { stage in
            let call = call(stage, notes)
            stage.stream.respond(text: "a")
            call.begin(on: stage.server, stage.driver.exchange.connection)
        }
        #expect(notes.all == ["head 200", "content a", "end true"])
    }
}
