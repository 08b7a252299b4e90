import HttpWare

extension HttpFields {
    /// Whether `Cache-Control` forbids changes of the content: `no-transform`, RFC 9111 §5.2.1.6 and §5.2.2.6.
    var forbidsTransform: Bool {
        values(of: .cacheControl).contains { value in
            value.split(separator: ",").contains { directive in
                directive.filter { $0 != " " && $0 != "\t" }.lowercased() == "no-transform"
            }
        }
    }
}
