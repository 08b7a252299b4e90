import FuzzSupport

@main enum FuzzDnsQueries {
    static func main() { Fuzzing.run { test($0, $1) } }
}

/// Called by libFuzzer with each input.
@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzzing.dnsQueries(start, count)
    return 0
}
