public import HttpWare

/// Captures the exchanges of one loop. Used on its thread only.
public final class LoopCaptures: ExchangeTapSource {
    /// The store that keeps the captures.
    public let store: CaptureStore
    let loop: EventLoop
    /// The masking rules of the settings.
    let redaction: CaptureRedaction
    /// The most bytes that are kept of a content.
    let mostContent: Int
    /// The exchanges in progress.
    private var open: [ObjectIdentifier: ExchangeCapture] = [:]
    private var isLooking = false
    /// The memory that the store has reserved for this loop and no exchange uses.
    private var spare = 0
    /// The step in which memory is reserved from the store.
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

    /// Takes memory for an exchange; returns false if there is not enough.
    func take(_ count: Int) -> Bool {
        if count > spare {
            let more = (count - spare + step - 1) / step * step
            guard store.reserve(more) else { return false }
            spare += more
        }
        spare -= count
        return true
    }

    /// Takes back the memory of an exchange.
    func giveBack(_ count: Int) {
        spare += count
        guard spare > 2 * step else { return }
        store.giveBack(spare - step)
        spare = step
    }

    func ended(_ capture: ExchangeCapture) { open[ObjectIdentifier(capture)] = nil }

    /// Shows the changes of the exchanges in progress, and schedules the next look while there are any.
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
