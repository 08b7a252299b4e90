public import HttpWare

/// Captures the exchanges of one loop. Used on its thread only.
public final class LoopCaptures: ExchangeTapSource {
    /// Where they are kept.
    public let store: CaptureStore
    let loop: EventLoop
    /// The rules of the settings for masking.
    let redaction: CaptureRedaction
    /// The most bytes of a content.
    let mostContent: Int
    /// Those that are under way.
    private var open: [ObjectIdentifier: ExchangeCapture] = [:]
    private var isLooking = false
    /// Memory that the store has set aside for this loop, and that no exchange has taken.
    private var spare = 0
    /// Memory is taken from the store in steps of so much.
    private let step: Int

    /// Exchanges that take longer are shown while they run.
    private static let interval = Duration.milliseconds(50)

    public init(_ store: CaptureStore, loop: EventLoop) {
        self.store = store
        self.loop = loop
        redaction = CaptureRedaction(store.settings)
        mostContent = store.settings.content.bytes
        step = max(4 << 10, min(256 << 10, store.settings.memory.bytes / 256))
    }

    public func makeTap(for exchange: Exchange) -> (any ExchangeTap)? {
        let capture = ExchangeCapture(self)
        guard capture.begin(exchange) else { return nil }
        open[ObjectIdentifier(capture)] = capture
        if !isLooking { look() }
        return capture
    }

    deinit { store.giveBack(spare) }

    /// Takes memory for an exchange; false if there is not so much.
    func take(_ count: Int) -> Bool {
        if count > spare {
            let more = (count - spare + step - 1) / step * step
            guard store.reserve(more) else { return false }
            spare += more
        }
        spare -= count
        return true
    }

    /// Takes back what an exchange had.
    func giveBack(_ count: Int) {
        spare += count
        guard spare > 2 * step else { return }
        store.giveBack(spare - step)
        spare = step
    }

    func ended(_ capture: ExchangeCapture) { open[ObjectIdentifier(capture)] = nil }

    /// Shows what changed of the exchanges that are under way, and looks again as long as there are some.
    private func look() {
        isLooking = true
        loop.schedule(after: LoopCaptures.interval) { [weak self] in
            guard let self else { return }
            for capture in open.values { capture.show() }
            isLooking = false
            if !open.isEmpty { look() }
        }
    }
}
