/// A table in plain text with aligned columns.
enum TextTable {
    /// The rows. Each cell except the last is as wide as the widest cell of its column. All rows have as many cells as
    /// the first.
    static func lines(_ rows: [[String]]) -> [String] {
        let columns = max(0, (rows.first?.count ?? 0) - 1)
        let widths = (0..<columns).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            let padded = zip(row, widths).map { cell, width in
                cell + String(repeating: " ", count: max(0, width - cell.count))
            }
            return (padded + row.suffix(1)).joined(separator: "  ")
        }
    }
}
