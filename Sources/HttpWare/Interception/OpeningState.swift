/// The start of an intercepted tunnel so far, and the consequences: the client's first bytes decide how the tunnel is handled, unless
/// the client is silent and the host speaks first.
///
/// Pure: `TunnelOpening` has the socket and the timer, and does what each action says.
struct OpeningState: Equatable {
    /// The connection to the host, while the tunnel may still be intercepted.
    enum Host: Equatable, CaseIterable {
        case apart, connecting, connected
    }

    enum Phase: Equatable {
        /// The client has sent nothing, for a short time.
        case silent
        /// The client has sent nothing for longer. Unless the host is apart, it may speak first.
        case waiting(Host)
        /// The client's first bytes do not show its protocol yet.
        case reading(Host)
        /// The tunnel certainly passes unread; further bytes of the client wait until the host is connected.
        case passing
        /// The tunnel passes unread, on an ordinary connection.
        case unread
        /// The client speaks TLS.
        case tls
        /// The client speaks HTTP.
        case http
        case refused
        case closed
    }

    enum Event: Equatable {
        /// Bytes of the client arrived; all of them together show this.
        case bytes(TunnelProtocol)
        /// The rules let a tunnel with TLS pass unread, to the tunnel's host or to the one that the client named.
        case passes(host: String?, UnreadReason)
        case hostConnected, hostSpoke
        /// The connection to the host failed, or has ended.
        case hostFailed
        case timer
        /// The client sends no more.
        case end
        /// The listener drains.
        case drain
    }

    enum Action: Equatable {
        case none
        /// The rest of the first bytes has the time limit of a head.
        case awaitHead
        /// The client has the idle timeout to begin.
        case wait
        /// The same, and the host is connected in the background.
        case listen
        /// The connection to the host is not needed any more.
        case stopListening
        /// The client has as long as a draining listener allows.
        case awaitDrain
        /// The tunnel is intercepted, with TLS or without. The connection to the host, if there is one, is not needed.
        case secure(serverName: String?)
        case speakHttp
        /// The tunnel passes unread: the host is connected now, was connected, or is being connected.
        case connect(host: String?, UnreadReason)
        case pass, awaitHost
        case refuse
        case close
    }

    private(set) var phase = Phase.silent
    /// Whether a tunnel with a protocol other than TLS and HTTP passes unread.
    let passesOpaque: Bool
    /// Whether tunnels to the host that the CONNECT names are intercepted.
    let isListed: Bool

    init(passesOpaque: Bool, isListed: Bool) {
        self.passesOpaque = passesOpaque
        self.isListed = isListed
    }

    mutating func take(_ event: Event) -> Action {
        switch phase {
        case .silent: beforeBytes(event, .apart)
        case .waiting(let host): hearHost(event, host) ?? beforeBytes(event, host)
        case .reading(let host): hearHost(event, host) ?? read(event, host)
        case .passing: whilePassing(event)
        case .tls: secured(event)
        case .unread, .http, .refused, .closed: .none
        }
    }

    /// The client has not begun.
    private mutating func beforeBytes(_ event: Event, _ host: Host) -> Action {
        switch event {
        case .bytes(.unknown):
            phase = .reading(host)
            return .awaitHead
        case .bytes(let spoken): return decide(spoken, host)
        case .timer where phase == .silent:
            phase = .waiting(passesOpaque ? .connecting : .apart)
            return passesOpaque ? .listen : .wait
        // A silent client may still want to receive from the host.
        case .end where passesOpaque: return pass(.opaque, host)
        case .timer, .end: return close()
        case .drain:
            if phase == .silent { phase = .waiting(.apart) }
            return .awaitDrain
        case .hostConnected, .hostSpoke, .hostFailed, .passes: return .none
        }
    }

    /// The client has begun, and its protocol is unknown.
    private mutating func read(_ event: Event, _ host: Host) -> Action {
        switch event {
        case .bytes(.unknown): .none
        case .bytes(let spoken): decide(spoken, host)
        case .timer, .end: close()
        case .drain: .awaitDrain
        case .hostConnected, .hostSpoke, .hostFailed, .passes: .none
        }
    }

    /// An event of the host before the client's bytes have decided; `nil` for other events.
    private mutating func hearHost(_ event: Event, _ host: Host) -> Action? {
        guard host != .apart else { return nil }
        switch event {
        case .hostConnected:
            setHost(.connected)
            return Action.none
        case .hostSpoke:
            phase = .unread
            return .pass
        case .hostFailed:
            // That does not decide how the tunnel is handled.
            setHost(.apart)
            return .stopListening
        case .bytes, .passes, .timer, .end, .drain: return nil
        }
    }

    private mutating func setHost(_ host: Host) {
        if case .reading = phase { phase = .reading(host) } else { phase = .waiting(host) }
    }

    /// The client's protocol is known.
    private mutating func decide(_ spoken: TunnelProtocol, _ host: Host) -> Action {
        switch spoken {
        case .unknown: return .none
        case .tls(let serverName):
            phase = .tls
            return .secure(serverName: serverName)
        case .http where isListed:
            phase = .http
            return .speakHttp
        case .http: return pass(.notListed, host)
        case .other where passesOpaque: return pass(.opaque, host)
        case .other:
            phase = .refused
            return .refuse
        }
    }

    /// The tunnel certainly passes unread.
    private mutating func pass(_ reason: UnreadReason, _ host: Host) -> Action {
        phase = host == .connected ? .unread : .passing
        return switch host {
        case .apart: .connect(host: nil, reason)
        case .connecting: .awaitHost
        case .connected: .pass
        }
    }

    /// The connection to the host has its own deadline.
    private mutating func whilePassing(_ event: Event) -> Action {
        switch event {
        case .hostConnected, .hostSpoke:
            phase = .unread
            return .pass
        case .hostFailed: return close()
        case .bytes, .passes, .timer, .end, .drain: return .none
        }
    }

    /// The rules may still let the tunnel pass unread, by the name in the handshake.
    private mutating func secured(_ event: Event) -> Action {
        guard case .passes(let host, let reason) = event else { return .none }
        phase = .passing
        return .connect(host: host, reason)
    }

    private mutating func close() -> Action {
        phase = .closed
        return .close
    }
}
