@testable import HttpWare
@testable import GatewayWares

/// Paths of requests that name files.
extension Fuzzing {
    public static func filePath(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (_, wire) = input(start, count) else { return }
        let text = String(decoding: wire, as: UTF8.self)
        for showsHidden in [false, true] {
            guard let place = FilePlace(text, showsHidden: showsHidden) else { continue }
            require(place.path.count <= 4095, "too long for the system")
            require(!place.path.contains(0), "a NUL")
            require(place.path.isEmpty ? place.isFolder : true, "a file without a name")
            guard !place.path.isEmpty else { continue }
            for name in place.path.split(separator: 0x2f, omittingEmptySubsequences: false) {
                require(!name.isEmpty, "two slashes, or one at an end")
                require(!name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8), "dot segments")
                require(
                    showsHidden || name.first != 0x2e || name.elementsEqual(".well-known".utf8), "a hidden name")
            }
        }
        // The path of a request is in its normal form, which names the same place.
        guard let request = try? HttpRequest(.get, text), request.hasPath else { return }
        guard let place = FilePlace(request.path, showsHidden: true) else { return }
        require(FilePlace(request.path, showsHidden: true) == place, "another place")
    }
}
