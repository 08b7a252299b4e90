import FuzzSupport

@main enum FuzzApprovals {
    static func main() { Fuzzing.run { test($0, $1) } }
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzzing.approvals(start, count)
    return 0
}
