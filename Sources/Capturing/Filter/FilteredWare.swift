public import HttpWare

/// A ware that accepts a filter of captures: `filter` beside `if` in a file.
public protocol FilteredWare: Ware {
    /// Whether the ware itself evaluates the filter at the end of the exchange. If not, the filter is evaluated before the
    /// ware runs.
    static var filtersAtEnd: Bool { get }
    /// The ware with the filter that it evaluates itself.
    func filtered(by filter: CaptureFilter) -> Self
}

extension FilteredWare {
    public static var filtersAtEnd: Bool { false }
    public func filtered(by filter: CaptureFilter) -> Self { self }
}
