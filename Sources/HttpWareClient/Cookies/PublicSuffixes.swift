#if PublicSuffixes
    import CPsl

    /// The list of public suffixes, as libpsl has it: that of the system if it is newer than its own, without later changes.
    private struct SuffixList: @unchecked Sendable {
        // It lives as long as the process, and no call changes it. libpsl's own list is a constant.
        let list: OpaquePointer? = psl_latest(nil) ?? psl_builtin()
    }

    private let suffixes = SuffixList()
#endif

/// The names below which anyone can register a name, such as `com` and `co.uk`. RFC 6265bis §5.7, step 8.
enum PublicSuffixes {
    /// Whether the domain, in ASCII and lower case, is such a name. Without the trait `PublicSuffixes`, only names with one label are known.
    static func contains(_ domain: String) -> Bool {
        var domain = domain
        while domain.hasSuffix(".") { domain.removeLast() }
        #if PublicSuffixes
            return psl_is_public_suffix(suffixes.list, domain) != 0
        #else
            return !domain.contains(".")
        #endif
    }
}
