import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct BackgroundTests {
    private let notes = Notes()

    /// Notes what it is given.
    private final class Receiver: BackgroundReceiver {
        let notes: Notes
        init(_ notes: Notes) { self.notes = notes }

        func responseStarted(_ response: HttpResponse, in exchange: Exchange) {
            let failure = exchange.failure.map { " \($0.fault)" } ?? ""
            notes.add("head \(response.status.code) by \(exchange.responder.name)\(failure)")
        }
        func responseContent(_ bytes: UnsafeRawBufferPointer) {
            notes.add("content " + String(decoding: bytes, as: UTF8.self))
        }
        func responseEnded(isWhole: Bool) { notes.add("end \(isWhole)") }
    }

    /// Answers at once, and sends the same request inward in the background.
    private func starter() -> OnBoth {
        OnBoth { [notes] request, exchange in
            #expect(exchange.startBackground(request, to: Receiver(notes)))
            return .abort(with: HttpResponse(.accepted))
        } back: { [notes] response, _ in
            notes.add("starter response \(response.status.code)")
            return .pass
        }
    }

    private func stage() throws -> DriverStage {
        try DriverStage(
            [
                Observing(notes: notes), OnBoth.noting("outer", in: notes), starter(),
                OnBoth.noting("inner", in: notes),
            ],
            after: [OnResponse.noting("after", in: notes)])
    }

    /// An exchange whose response others share. With a filter, the sharing ends with the content.
    private func sharedStage(isFiltered: Bool) throws -> DriverStage {
        try DriverStage([
            OnBoth { _, exchange in
                exchange.sharer = Sharing(outlivesClient: true)
                return .pass
            } back: { _, exchange in
                if isFiltered { exchange.filterResponseContent(with: EndingFilter(exchange)) }
                return .pass
            }
        ])
    }

    @Test func `a background exchange passes the wares behind its starter, and no others`() async throws {
        let stage = try stage()
        await stage.begin(path: "/x")
        await stage.step { stage in
            #expect(stage.client.status == 202 && stage.client.ends == 1)
            #expect(stage.stream.request?.path == "/x")
            stage.stream.respond(text: "abc")
        }
        #expect(
            notes.all == [
                "outer request", "inner request", "outer response 202", "after 202 by 2", "/x completed 202",
                "inner response 200", "head 200 by upstream", "content abc", "end true",
            ])
        await stage.step { #expect($0.server.backgroundCount == 0) }
    }

    @Test func `its failures are told to the receiver alone`() async throws {
        let stage = try stage()
        await stage.step { $0.origin.failures = [GatewayError(.upstream, .connectionRefused, "refused")] }
        await stage.begin()
        #expect(notes.all.contains("head 502 by gateway connectionRefused"))
        #expect(notes.all.filter { $0.hasPrefix("/ completed") }.count == 1)
    }

    @Test func `content that is cut off is not whole`() async throws {
        let stage = try stage()
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("a")
            stage.stream.fail(GatewayError(.upstream, .responseIncomplete, "cut"))
        }
        #expect(notes.all.suffix(2) == ["content a", "end false"])
    }

    @Test func `no more than the given number run at once`() async throws {
        let stage = try DriverStage([
            OnRequest { [notes] request, exchange in
                var started = 0
                while started < 10_000, exchange.startBackground(request, to: Receiver(notes)) { started += 1 }
                notes.add("started \(started)")
                return .abort(with: HttpResponse(.ok))
            }
        ])
        await stage.begin()
        #expect(notes.all.first == "started 256")
    }

    // MARK: Left by the client

    @Test func `an exchange that others wait for goes on when its client leaves, without postwares`() async throws {
        let stage = try DriverStage(
            [
                Observing(notes: notes),
                OnBoth { _, exchange in
                    exchange.sharer = Sharing(outlivesClient: true)
                    return .pass
                } back: { [notes] response, exchange in
                    notes.add("half \(response.status.code)")
                    exchange.filterResponseContent(with: UpperCase())
                    return .pass
                },
            ], after: [OnResponse.noting("after", in: notes)])
        await stage.begin(path: "/x")
        await stage.step { stage in
            stage.driver.clientLeft()
            #expect(!stage.stream.isCancelled)
            stage.stream.respond(text: "abc")
        }
        #expect(notes.all == ["half 200", "/x client left -"])
        await stage.step { stage in
            #expect(stage.client.response == nil)
            #expect(stage.server.backgroundCount == 0)
        }
    }

    @Test func `a client that leaves in the midst of the content does not end what others wait for`() async throws {
        let stage = try DriverStage([
            Observing(notes: notes),
            OnRequest { _, exchange in
                exchange.sharer = Sharing(outlivesClient: true)
                return .pass
            },
        ])
        await stage.begin(path: "/x")
        await stage.step { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("a")
            stage.driver.clientLeft()
            stage.stream.send("bc")
            stage.stream.end()
            #expect(stage.client.text == "a" && stage.client.ends == 0)
        }
        #expect(notes.all == ["/x client left -"])
    }

    @Test func `an exchange without waiting requests ends with its client, and its followers are notified once`()
        async throws
    {
        let stage = try DriverStage([
            OnRequest { [notes] _, exchange in
                exchange.sharer = Sharing(outlivesClient: false, notes)
                return .pass
            }
        ])
        await stage.begin()
        await stage.step { stage in
            stage.driver.clientLeft()
            #expect(stage.stream.isCancelled)
        }
        #expect(notes.all == ["shared no more"])
    }

    @Test func `an exchange without its client ends once nothing needs the rest of its response`() async throws {
        let stage = try DriverStage([
            OnRequest { [notes] _, exchange in
                exchange.sharer = Sharing(outlivesClient: true, notes)
                return .pass
            }
        ])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .unknown)
            stage.driver.clientLeft()
            stage.stream.send("a")
            #expect(!stage.stream.isCancelled)
            (stage.driver.exchange.sharer as? Sharing)?.outlivesClient = false
            stage.stream.send("b")
            #expect(stage.stream.isCancelled)
        }
        #expect(notes.all == ["shared no more"])
        await stage.step { #expect($0.server.backgroundCount == 0) }
    }

    @Test func `an exchange without its client waits for the other clients of its response`() async throws {
        let stage = try sharedStage(isFiltered: false)
        await stage.begin()
        await stage.step { stage in
            let sharing = stage.driver.exchange.sharer as? Sharing
            stage.stream.respond(extent: .unknown)
            stage.driver.clientLeft()
            stage.stream.send("a")
            #expect(!stage.stream.isPaused)
            sharing?.keepsPace = false
            stage.stream.send("b")
            #expect(stage.stream.isPaused && sharing?.isWaitedFor == true)
            sharing?.keepsPace = true
            sharing?.wake()
        }
        await stage.step { stage in
            #expect(!stage.stream.isPaused && !stage.stream.isCancelled)
            let sharing = stage.driver.exchange.sharer as? Sharing
            sharing?.keepsPace = false
            stage.stream.send("c")
            #expect(stage.stream.isPaused)
            sharing?.outlivesClient = false
            sharing?.wake()
        }
        await stage.step { #expect($0.stream.isCancelled && $0.server.backgroundCount == 0) }
    }

    @Test(arguments: [true, false])
    func `an exchange without its client ends with its response, also when nothing needs the end any more`(
        isFiltered: Bool
    ) async throws {
        let stage = try sharedStage(isFiltered: isFiltered)
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .unknown)
            stage.driver.clientLeft()
            stage.stream.send("a")
            if !isFiltered { EndingFilter(stage.driver.exchange).end() }
            stage.stream.end()
        }
        await stage.step { #expect($0.server.backgroundCount == 0) }
    }

    @Test func `an exchange that is ahead when its client leaves goes on as soon as others have caught up`()
        async throws
    {
        let stage = try sharedStage(isFiltered: true)
        await stage.begin()
        await stage.step { stage in
            let sharing = stage.driver.exchange.sharer as? Sharing
            stage.stream.respond(extent: .unknown)
            stage.stream.send("a")
            sharing?.keepsPace = false
            stage.driver.clientLeft()
            #expect(sharing?.isWaitedFor == true && stage.stream.isPaused)
            sharing?.keepsPace = true
            sharing?.wake()
        }
        await stage.step { stage in
            #expect(!stage.stream.isPaused)
            stage.stream.end()
        }
        await stage.step { #expect($0.server.backgroundCount == 0) }
    }

    @Test(arguments: [true, false])
    func `an exchange whose client takes nothing goes on as soon as others have caught up`(isFiltered: Bool)
        async throws
    {
        let stage = try sharedStage(isFiltered: isFiltered)
        await stage.begin()
        await stage.step { stage in
            let sharing = stage.driver.exchange.sharer as? Sharing
            stage.stream.respond(extent: .unknown)
            stage.client.isBlocked = true
            sharing?.keepsPace = false
            stage.stream.send("a")
            #expect(stage.stream.isPaused && sharing?.isAlone == false)
            sharing?.wake()
        }
        await stage.step { stage in
            // The others are behind again.
            #expect(stage.stream.isPaused)
            let sharing = stage.driver.exchange.sharer as? Sharing
            sharing?.keepsPace = true
            sharing?.wake()
        }
        await stage.step { stage in
            #expect(!stage.stream.isPaused)
            stage.stream.end()
        }
    }

    @Test func `a slow client does not slow what others wait for`() async throws {
        for outlives in [true, false] {
            let stage = try DriverStage([
                OnRequest { _, exchange in
                    exchange.sharer = Sharing(outlivesClient: outlives)
                    return .pass
                }
            ])
            await stage.begin()
            await stage.step { stage in
                stage.stream.respond(extent: .length(3))
                stage.client.isBlocked = true
                stage.stream.send("a")
                #expect(stage.stream.isPaused != outlives)
            }
        }
    }
}

/// Ends the sharing with the content, as a lead does.
private final class EndingFilter: ContentFilter {
    private let exchange: Exchange

    init(_ exchange: Exchange) { self.exchange = exchange }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) { output += input }
    func finish(into output: inout [UInt8]) { end() }

    func end() {
        guard let sharing = exchange.sharer as? Sharing else { return }
        (sharing.outlivesClient, sharing.keepsPace) = (false, false)
    }
}

private final class Sharing: ResponseSharer {
    var outlivesClient: Bool
    var keepsPace: Bool
    private var waiting: (@Sendable () -> Void)?
    private(set) var isAlone: Bool?
    private let notes: Notes?

    var isWaitedFor: Bool { waiting != nil }

    /// Wakes the exchange, once.
    func wake() { waiting.take()?() }

    init(outlivesClient: Bool, _ notes: Notes? = nil) {
        self.outlivesClient = outlivesClient
        keepsPace = outlivesClient
        self.notes = notes
    }

    func exchangeEnded() { notes?.add("shared no more") }
    func whenPaceKept(isAlone: Bool, _ wake: @escaping @Sendable () -> Void) {
        waiting = wake
        self.isAlone = isAlone
    }
}
