/// Things that belong to a client's connection alone, and end with it. Used on the connection's loop only.
protocol ClientBelongings: AnyObject {
    /// Tells the client's connection apart from all others of the process.
    var number: UInt64 { get }
    /// Ends everything: the client's connection has closed.
    func close()
}
