public import HttpWare

/// Captures the exchanges of one loop. Used on its thread only.
public final class LoopCaptures: ExchangeTapSource {
    /// The store that keeps the captures.
    public let store: CaptureStore
    let loop: EventLoop
    /// The most bytes that are kept of a content.
    let mostContent: Int
    /// The filter of the settings.
    let filter: CaptureFilter?
    /// The exchanges in progress.
    private var open: [ExchangeCapture] = []
    private var isLooking = false
    /// The memory that the store has reserved for this loop and no exchange uses.
    private var spare = 0
    /// The step in which memory is reserved from the store.
    private let step: Int
    /// Memory in which exchanges note their heads.
    private var spareBytes: [[UInt8]] = []

    /// Exchanges that take longer are shown while they run.
    private static let interval = Duration.milliseconds(50)
    private static let mostSpares = 16
    private static let mostSpareBytes = 16 << 10

    public init(_ store: CaptureStore, loop: EventLoop) {
        self.store = store
        self.loop = loop
        mostContent = store.settings.content.bytes
        filter = store.settings.filter
        step = max(4 << 10, min(256 << 10, store.settings.memory.bytes / 256))
    }

    public func makeTap(for exchange: Exchange) -> (any ExchangeTap)? {
        let capture = ExchangeCapture(self)
        guard capture.begin(exchange) else { return nil }
        capture.place = open.count
        open.append(capture)
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

    // MARK: Memory for heads

    /// Empty memory, usually of an earlier exchange.
    func takeBytes() -> [UInt8] {
        spareBytes.popLast()
            ?? {
                var bytes: [UInt8] = []
                bytes.reserveCapacity(2 << 10)
                return bytes
            }()
    }

    /// Takes memory back.
    func giveBytes(_ bytes: inout [UInt8]) {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        guard spareBytes.count < LoopCaptures.mostSpares, taken.capacity <= LoopCaptures.mostSpareBytes else { return }
        taken.removeAll(keepingCapacity: true)
        spareBytes.append(taken)
    }

    /// Moves bytes to memory of their size, and takes the former memory back.
    func pack(_ bytes: inout [UInt8]) {
        var packed = bytes.withUnsafeBufferPointer { Array($0) }
        swap(&packed, &bytes)
        giveBytes(&packed)
    }

    // MARK: Exchanges in progress

    func ended(_ capture: ExchangeCapture) {
        guard capture.place < open.count, open[capture.place] === capture, let last = open.popLast() else { return }
        guard last !== capture else { return }
        open[capture.place] = last
        last.place = capture.place
    }

    /// Shows the changes of the exchanges in progress, and schedules the next look while there are any.
    private func look() {
        isLooking = true
        loop.schedule(after: LoopCaptures.interval) { [weak self] in
            guard let self else { return }
            for capture in open { capture.show() }
            isLooking = false
            if !open.isEmpty { look() }
        }
    }
}
