import Glibc
import Synchronization

/// The open stores of an app. They are closed at the normal end of the program, because an app may keep them until then
/// without closing them.
final class OpenStores: Sendable {
    static let shared = OpenStores()

    private struct Place {
        weak var store: DiskStore?
    }

    private let places = Mutex<[Place]>([])
    /// The maximum time that the end of a program waits for pending writes.
    private static let patience = Duration.seconds(2)

    private init() { atexit { OpenStores.shared.closeAll() } }

    func add(_ store: DiskStore) {
        places.withLock { places in
            places.removeAll { $0.store == nil }
            places.append(Place(store: store))
        }
    }

    private func closeAll() {
        let stores = places.withLock { places in places.compactMap(\.store) }
        for store in stores { store.close(patience: OpenStores.patience) }
    }
}
