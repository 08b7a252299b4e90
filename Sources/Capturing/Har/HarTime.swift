import HttpWare

/// Numeric times in archives.
enum HarTime {
    /// Seconds since 1970, or milliseconds if seconds would mean a time thousands of years ahead.
    static func epoch(_ number: Double?) -> WallTime? {
        guard var number, number >= 0, number < 1e15 else { return nil }
        if number > 1e11 { number /= 1000 }
        let microseconds = Int64((number * 1_000_000).rounded())
        return WallTime(seconds: microseconds / 1_000_000, nanoseconds: Int32(microseconds % 1_000_000) * 1000)
    }
}
