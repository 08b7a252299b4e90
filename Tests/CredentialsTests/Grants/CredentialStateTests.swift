import HttpWare
import Testing

@testable import Credentials

@Suite struct CredentialStateTests {
    private enum Event: String, CaseIterable {
        case publish, reject, enter, leave, finish, fail, force, clear
    }

    /// A state with the waiting requests by it, as their places know it.
    private struct Trial {
        var state: CredentialState
        /// Places that were given out, and not yet ended or left.
        var waiting: [HoldPlace] = []
        var events: [Event] = []
        /// Steps that the rules do not allow.
        var faults: [String] = []

        init(mostRefreshes: Int) {
            var definition = CredentialDefinition(name: "orders", grant: .clientCredentials)
            definition.window = .init(max: mostRefreshes, per: .seconds(30))
            state = CredentialState(definition)
        }

        mutating func take(_ event: Event) {
            let wall = WallTime(seconds: 1000)
            let now = LoopInstant(nanoseconds: 0)
            events.append(event)
            switch event {
            case .publish:
                end(state.publish(Secret("token"), expires: nil, lifetime: nil, refreshToken: nil, at: wall))
            case .reject: if let token = state.token { _ = state.reject(token.number, at: now) }
            case .enter:
                switch state.takePlace(wall, now, bytes: 1, limits: HoldLimits(), leave: { _ in }) {
                case .held(let place, let begins):
                    waiting.append(place)
                    if let begins, begins != state.refreshing { faults.append("begins another refresh than is noted") }
                case .ready: if !waiting.isEmpty { faults.append("passes those who wait") }
                case .refused(let failure, _): if failure.retryAfter == nil { faults.append("refuses without a time") }
                case .overflow: faults.append("has no room")
                }
            case .leave: if !waiting.isEmpty { state.leave(waiting.removeFirst()) }
            case .finish:
                let former = state.refreshing
                switch state.finish(.renewed, at: wall, now) {
                case .idle: if former != nil, !waiting.isEmpty { faults.append("forgets those who wait") }
                case .begins(let next):
                    if next != state.refreshing || next.number == former?.number { faults.append("begins nothing") }
                case .refuses(let places, let failure):
                    end(places)
                    if failure.retryAfter == nil { faults.append("refuses without a time") }
                }
            case .fail: end(state.fail(CredentialFailure(.failed, "no"), at: now).0)
            case .force: if let begun = state.force(now), begun != state.refreshing { faults.append("begins nothing") }
            case .clear: state.clear()
            }
            let report = state.report(at: wall, now)
            if report.held != waiting.count { faults.append("counts \(report.held) of \(waiting.count)") }
            if !waiting.isEmpty, state.refreshing == nil { faults.append("nobody will wake those who wait") }
            if !waiting.isEmpty, state.usable(at: wall) != nil { faults.append("holds while there is a token") }
        }

        private mutating func end(_ places: [HoldPlace]) {
            if places.map(\.number) != waiting.map(\.number) { faults.append("wakes others than those who wait") }
            waiting = []
        }
    }

    /// Tries every order of events behind a trial; answers how many it tried.
    private func tryAll(_ trial: Trial, left: Int, _ found: inout [String]) -> Int {
        if !trial.faults.isEmpty {
            found.append("\(trial.events.map(\.rawValue)): \(trial.faults)")
            return 1
        }
        guard left > 0 else { return 1 }
        return Event.allCases.reduce(0) { count, event in
            var next = trial
            next.take(event)
            return count + tryAll(next, left: left - 1, &found)
        }
    }

    @Test(arguments: [1, 5])
    func `in every order of six events, requests that wait are woken by a refresh that is under way`(
        mostRefreshes: Int
    ) async {
        var found: [String] = []
        var count = 0
        for first in Event.allCases {
            for second in Event.allCases {
                var trial = Trial(mostRefreshes: mostRefreshes)
                trial.take(first)
                trial.take(second)
                count += tryAll(trial, left: 4, &found)
                // Other tests have their turn.
                await Task.yield()
            }
        }
        #expect(found.isEmpty, "\(found.count) orders, such as \(found.prefix(3))")
        #expect(count == 262_144 || !found.isEmpty)
    }

    private let wall = WallTime(seconds: 1000)
    private let now = LoopInstant(nanoseconds: 0)

    private func enter(_ state: inout CredentialState) -> CredentialState.Entry {
        state.takePlace(wall, now, bytes: 1, limits: HoldLimits(), leave: { _ in })
    }

    private func publish(_ state: inout CredentialState) -> [HoldPlace] {
        state.publish(Secret("token"), expires: nil, lifetime: nil, refreshToken: nil, at: wall)
    }

    @Test func `a token that is rejected before its refresh ends is followed by the next refresh`() throws {
        var state = CredentialState(CredentialDefinition(name: "orders", grant: .clientCredentials))
        _ = enter(&state)
        _ = publish(&state)
        #expect(state.reject(1, at: now) == nil)
        guard case .held(let place, nil) = enter(&state) else {
            Issue.record("the request does not wait")
            return
        }
        #expect(place.refresh == 2)
        guard case .begins(let next) = state.finish(.renewed, at: wall, now) else {
            Issue.record("no refresh begins")
            return
        }
        #expect(next.number == 2)
        #expect(publish(&state).map(\.number) == [place.number])
        guard case .idle = state.finish(.renewed, at: wall, now) else {
            Issue.record("a refresh begins for nobody")
            return
        }
        // The record of each refresh counts the requests that waited for it.
        #expect(state.report(at: wall, now).history.map(\.held) == [1, 1])
    }

    @Test func `a token that is rejected before its refresh ends is sent on if there were too many refreshes`() {
        var definition = CredentialDefinition(name: "orders", grant: .clientCredentials)
        definition.window = .init(max: 1, per: .seconds(30))
        var state = CredentialState(definition)
        _ = enter(&state)
        _ = publish(&state)
        #expect(state.reject(1, at: now)?.kind == .paused)
        #expect(state.usable(at: wall)?.number == 1)
    }

    @Test(arguments: [(CredentialFailure.Kind.failed, true), (.refused, false)])
    func `a failure that may pass is told from one that does not, in the pause behind it, too`(
        kind: CredentialFailure.Kind, mayPass: Bool
    ) {
        var definition = CredentialDefinition(name: "orders", grant: .clientCredentials)
        definition.window = .init(max: 1, per: .seconds(1000))
        var state = CredentialState(definition)
        _ = publish(&state)
        _ = state.reject(1, at: now)
        _ = enter(&state)
        let (places, told) = state.fail(CredentialFailure(kind, "no"), at: now)
        _ = state.finish(.failed, at: wall, now)
        #expect(places.count == 1)
        #expect(told.mayPass == mayPass)
        #expect(told.retryAfter == (mayPass ? .seconds(1) : .seconds(1000)))
        #expect(state.reject(1, at: now)?.mayPass == mayPass)
        // The pause has ended, and the window is still full.
        let later = now + .seconds(20)
        let paused = state.reject(1, at: later)
        #expect(paused?.mayPass == mayPass)
    }

    @Test func `a refresh that could not ask is tried again within a second, and does not count in the window`() {
        var definition = CredentialDefinition(name: "orders", grant: .clientCredentials)
        definition.window = .init(max: 2, per: .seconds(1000))
        var state = CredentialState(definition)
        var later = now
        let pauses: [Duration] = [250, 500, 1000, 1000, 1000].map { .milliseconds($0) }
        for pause in pauses {
            guard let refreshing = state.force(later) else {
                Issue.record("no refresh may begin")
                return
            }
            #expect(refreshing.began == later)
            let (_, told) = state.fail(CredentialFailure(cannotReach: "no lock").unasked, at: later)
            _ = state.finish(.failed, at: wall, later)
            #expect(told.retryAfter == pause && told.mayPass)
            #expect(state.beginIfDue(wall, later) == nil)
            later = later + pause
        }
        // Questions to the authorization server have the pauses and the window as before.
        for pause in [Duration.seconds(1), .seconds(2)] {
            #expect(state.beginIfDue(wall, later) != nil)
            let (_, told) = state.fail(CredentialFailure(.failed, "no answer"), at: later)
            _ = state.finish(.failed, at: wall, later)
            #expect(told.retryAfter == pause)
            later = later + pause
        }
        #expect(state.beginIfDue(wall, later) == nil)
    }

    @Test(arguments: [
        (3, 5, 30, 19), (10, 5, 30, nil), (9, 5, 30, 6), (60, 5, 30, nil), (600, 1, 3600, 7), (3600, 1, 3600, nil),
    ])
    func `a window that is too narrow for the tokens' lifetime is named with the number that suffices`(
        lifetime: Int, max: Int, per: Int, needed: Int?
    ) {
        var definition = CredentialDefinition(name: "orders", grant: .clientCredentials)
        definition.window = .init(max: max, per: .seconds(per))
        let shortfall = definition.shortfall(ofTokensLiving: .seconds(lifetime))
        #expect((shortfall == nil) == (needed == nil), "\(shortfall ?? "nothing")")
        guard let needed else { return }
        #expect(shortfall?.contains("max: \(needed) }") == true, "\(shortfall ?? "nothing")")
        definition.window.max = needed
        #expect(definition.shortfall(ofTokensLiving: .seconds(lifetime)) == nil)
        definition.window.max = needed - 1
        #expect(definition.shortfall(ofTokensLiving: .seconds(lifetime)) != nil)
    }
}
