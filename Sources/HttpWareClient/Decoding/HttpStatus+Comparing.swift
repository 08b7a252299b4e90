public import HttpWare

// Compares a status with its number: `error.status == 404`.

extension HttpStatus {
    public static func == (status: HttpStatus, code: Int) -> Bool { status.code == code }
    public static func != (status: HttpStatus, code: Int) -> Bool { status.code != code }

    /// `case 400...499:` in a `switch` over a status.
    public static func ~= (codes: ClosedRange<Int>, status: HttpStatus) -> Bool { codes.contains(status.code) }
    /// `case 404:` in a `switch` over a status.
    public static func ~= (code: Int, status: HttpStatus) -> Bool { status.code == code }
}

extension Optional<HttpStatus> {
    /// False without a status.
    public static func == (status: HttpStatus?, code: Int) -> Bool { status?.code == code }
    /// True without a status.
    public static func != (status: HttpStatus?, code: Int) -> Bool { status?.code != code }
}
