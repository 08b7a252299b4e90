import HttpWare

/// Times of archives that are numbers.
enum HarTime {
    /// Seconds since 1970; milliseconds where they would be thousands of years.
    static func epoch(_ number: Double?) -> WallTime? {
        guard var number, number >= 0, number < 1e15 else { return nil }
        if number > 1e11 { number /= 1000 }
        let microseconds = Int64((number * 1_000_000).rounded())
        return WallTime(seconds: microseconds / 1_000_000, nanoseconds: Int32(microseconds % 1_000_000) * 1000)
    }
}
