import HttpWare
import Synchronization

/// The encoders of one ware, which are used again for later contents. Safe from any thread.
final class EncoderPool: Sendable {
    /// An encoder that is in use for one content.
    ///
    /// Unchecked: it is handed over under the pool's mutex. After that, only the loop of its content uses it.
    struct Lent: @unchecked Sendable {
        let encoder: any ContentEncoder
    }

    private struct State {
        var idle: [Lent] = []
        var inUse = 0
        var contents = 0
        var spared = 0
    }

    private let state = Mutex(State())
    private let level: Int
    private let most: Int

    /// The maximum number of idle encoders. Each holds memory, and more than this are rarely needed at once.
    static let mostIdle = 8

    /// At most `most` contents have an encoder at the same time.
    init(level: Int, most: Int) {
        self.level = level
        self.most = most
    }

    /// Takes an encoder for a content; `nil` if too many are in use, or there is no memory.
    func takeEncoder(_ coding: ContentCoding) -> Lent? {
        let (mayHave, idle) = state.withLock { state -> (Bool, Lent?) in
            guard state.inUse < most else {
                state.spared += 1
                return (false, nil)
            }
            state.inUse += 1
            state.contents += 1
            guard let place = state.idle.lastIndex(where: { $0.encoder.coding == coding }) else { return (true, nil) }
            return (true, state.idle.remove(at: place))
        }
        guard mayHave else { return nil }
        if let idle { return idle }
        if let made = coding.makeEncoder(level: level) { return Lent(encoder: made) }
        state.withLock { $0.inUse -= 1 }
        return nil
    }

    /// Gives an encoder back when its content has ended, complete or not.
    func giveBack(_ lent: Lent) {
        let isUsable = lent.encoder.reset()
        state.withLock { state in
            state.inUse -= 1
            if isUsable, state.idle.count < EncoderPool.mostIdle { state.idle.append(lent) }
        }
    }
}

extension EncoderPool: WareCounter {
    var numbers: [WareNumber] {
        let (contents, inUse, spared) = state.withLock { ($0.contents, $0.inUse, $0.spared) }
        return [
            WareNumber("httpware_compressed_total", "Contents that were compressed.", contents),
            WareNumber("httpware_compressing", isGauge: true, "Contents that are compressed at the moment.", inUse),
            WareNumber("httpware_uncompressed_total", "Contents that were not, for too many were at once.", spared),
        ]
    }
}
