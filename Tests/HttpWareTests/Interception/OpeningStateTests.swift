import Testing

@testable import HttpWare

@Suite struct OpeningStateTests {
    private typealias Event = OpeningState.Event
    private typealias Action = OpeningState.Action
    private typealias Phase = OpeningState.Phase

    /// A phase, the events that lead to it, and what follows from each of `events` in it.
    private struct Row {
        let phase: Phase
        let path: [Event]
        let after: [(Action, Phase)]

        init(_ phase: Phase, by path: [Event], _ after: [(Action, Phase)]) {
            self.phase = phase
            self.path = path
            self.after = after
        }

        /// Nothing follows from the events, except from those at these places.
        init(_ phase: Phase, by path: [Event], except: [Int: (Action, Phase)] = [:]) {
            self.init(phase, by: path, OpeningStateTests.events.indices.map { except[$0] ?? (.none, phase) })
        }
    }

    private static let tls = Event.bytes(.tls(serverName: "a.test"))
    private static let events: [Event] = [
        .bytes(.unknown), tls, .bytes(.http), .bytes(.other), .passes(host: "b.test", .pinned), .hostConnected,
        .hostSpoke, .hostFailed, .timer, .end, .drain,
    ]

    private static let secure = (Action.secure(serverName: "a.test"), Phase.tls)
    private static let speak = (Action.speakHttp, Phase.http)
    private static let connect = (Action.connect(host: nil, .opaque), Phase.passing)
    private static let awaitHost = (Action.awaitHost, Phase.passing)
    private static let pass = (Action.pass, Phase.unread)
    private static let close = (Action.close, Phase.closed)

    private static func nothing(_ phase: Phase) -> (Action, Phase) { (.none, phase) }

    private static let silent: [(Action, Phase)] = [
        (.awaitHead, .reading(.apart)), secure, speak, connect, nothing(.silent), nothing(.silent), nothing(.silent),
        nothing(.silent), (.listen, .waiting(.connecting)), connect, (.awaitDrain, .waiting(.apart)),
    ]

    private static func waiting(
        _ host: OpeningState.Host, unread: (Action, Phase), connected: (Action, Phase), spoke: (Action, Phase),
        failed: (Action, Phase)
    ) -> [(Action, Phase)] {
        [
            (.awaitHead, .reading(host)), secure, speak, unread, nothing(.waiting(host)), connected, spoke, failed,
            close, unread, (.awaitDrain, .waiting(host)),
        ]
    }

    private static func reading(
        _ host: OpeningState.Host, unread: (Action, Phase), connected: (Action, Phase), spoke: (Action, Phase),
        failed: (Action, Phase)
    ) -> [(Action, Phase)] {
        [
            nothing(.reading(host)), secure, speak, unread, nothing(.reading(host)), connected, spoke, failed, close,
            close, (.awaitDrain, .reading(host)),
        ]
    }

    /// Of a tunnel to a listed host, which passes unread with other protocols.
    private static let rows: [Row] = [
        Row(.silent, by: [], silent),
        Row(
            .waiting(.apart), by: [.timer, .hostFailed],
            waiting(
                .apart, unread: connect, connected: nothing(.waiting(.apart)), spoke: nothing(.waiting(.apart)),
                failed: nothing(.waiting(.apart)))),
        Row(
            .waiting(.connecting), by: [.timer],
            waiting(
                .connecting, unread: awaitHost, connected: nothing(.waiting(.connected)), spoke: pass,
                failed: (.stopListening, .waiting(.apart)))),
        Row(
            .waiting(.connected), by: [.timer, .hostConnected],
            waiting(
                .connected, unread: pass, connected: nothing(.waiting(.connected)), spoke: pass,
                failed: (.stopListening, .waiting(.apart)))),
        Row(
            .reading(.apart), by: [.bytes(.unknown)],
            reading(
                .apart, unread: connect, connected: nothing(.reading(.apart)), spoke: nothing(.reading(.apart)),
                failed: nothing(.reading(.apart)))),
        Row(
            .reading(.connecting), by: [.timer, .bytes(.unknown)],
            reading(
                .connecting, unread: awaitHost, connected: nothing(.reading(.connected)), spoke: pass,
                failed: (.stopListening, .reading(.apart)))),
        Row(
            .reading(.connected), by: [.timer, .hostConnected, .bytes(.unknown)],
            reading(
                .connected, unread: pass, connected: nothing(.reading(.connected)), spoke: pass,
                failed: (.stopListening, .reading(.apart)))),
        Row(.passing, by: [.bytes(.other)], except: [5: pass, 6: pass, 7: close]),
        Row(.unread, by: [.bytes(.other), .hostConnected]),
        Row(.tls, by: [tls], except: [4: (.connect(host: "b.test", .pinned), .passing)]),
        Row(.http, by: [.bytes(.http)]),
        Row(.closed, by: [.timer, .timer]),
    ]

    private static func state(opaque: Bool = true, listed: Bool = true, after path: [Event] = []) -> OpeningState {
        var state = OpeningState(passesOpaque: opaque, isListed: listed)
        for event in path { _ = state.take(event) }
        return state
    }

    @Test func `each event in each phase has its action and its next phase`() {
        for row in Self.rows {
            let before = Self.state(after: row.path)
            #expect(before.phase == row.phase)
            #expect(row.after.count == Self.events.count)
            for (event, (action, phase)) in zip(Self.events, row.after) {
                var state = before
                #expect(state.take(event) == action, "\(row.phase), \(event)")
                #expect(state.phase == phase, "\(row.phase), \(event)")
            }
        }
    }

    @Test func `where other protocols are refused, no silence and no byte connects to the host`() {
        for path in [[], [Event.timer], [.bytes(.unknown)], [.timer, .bytes(.unknown)], [.drain]] {
            var state = Self.state(opaque: false, after: path)
            #expect(state.take(.bytes(.other)) == .refuse)
            #expect(state.phase == .refused)
            for event in Self.events { #expect(state.take(event) == .none, "\(event)") }
        }
        var state = Self.state(opaque: false)
        #expect(state.take(.timer) == .wait)
        #expect(state.phase == .waiting(.apart))
        #expect(state.take(.timer) == .close)
        for path in [[], [Event.timer], [.bytes(.unknown)]] {
            var state = Self.state(opaque: false, after: path)
            #expect(state.take(.end) == .close)
        }
    }

    @Test func `HTTP to a host that is not listed passes unread`() {
        let cases: [([Event], Action)] = [
            ([], .connect(host: nil, .notListed)), ([.bytes(.unknown)], .connect(host: nil, .notListed)),
            ([.timer], .awaitHost), ([.timer, .hostConnected], .pass),
        ]
        for (path, action) in cases {
            var state = Self.state(listed: false, after: path)
            #expect(state.take(.bytes(.http)) == action, "\(path)")
        }
    }

    @Test func `a phase with a decision is never left for one without`() {
        let decided: [Phase] = [.passing, .unread, .tls, .http, .refused, .closed]
        for opaque in [true, false] {
            for first in Self.events {
                for second in Self.events {
                    for third in Self.events {
                        var state = Self.state(opaque: opaque, after: [first, second, third])
                        guard decided.contains(state.phase) else { continue }
                        for event in Self.events {
                            _ = state.take(event)
                            #expect(decided.contains(state.phase), "\(first) \(second) \(third) \(event)")
                        }
                    }
                }
            }
        }
    }
}
