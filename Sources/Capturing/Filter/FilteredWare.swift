public import HttpWare

/// A ware that takes a filter of captures: `filter` beside `if` in a file.
public protocol FilteredWare: Ware {
    /// Whether the ware decides the filter itself when the exchange has ended; else it is decided before the ware is asked.
    static var filtersAtEnd: Bool { get }
    /// The ware with the filter that it decides itself.
    func filtered(by filter: CaptureFilter) -> Self
}

extension FilteredWare {
    public static var filtersAtEnd: Bool { false }
    public func filtered(by filter: CaptureFilter) -> Self { self }
}
