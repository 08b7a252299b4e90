import Testing

@testable import HttpWareCommand

@Suite struct LoadedLibraryTests {
    @Test func `the loaded libraries have versions and paths`() throws {
        let all = LoadedLibrary.all
        let event = try #require(all.first { $0.name.hasPrefix("libevent") })
        #expect(event.version.hasPrefix("2."))
        #expect(event.path.hasSuffix("/\(event.name)"))
        #expect(all.contains { $0.name == "libc.so.6" && $0.version.hasPrefix("2.") })
    }

    @Test func `a line without a path is left out, and a version may be empty`() {
        let read = LoadedLibrary.reading("liba.so.1\t1.2\t/lib/liba.so.1\nlibb.so\t\t/lib/b\tc/libb.so\nbroken\t1\n")
        #expect(
            read == [
                LoadedLibrary(name: "liba.so.1", version: "1.2", path: "/lib/liba.so.1"),
                LoadedLibrary(name: "libb.so", version: "", path: "/lib/b\tc/libb.so"),
            ])
    }

    @Test func `the table has columns`() {
        let libraries = LoadedLibrary.reading("liba.so.1\t1.2.3\t/a\nlibbb.so.1\t4\t/b\n")
        #expect(LoadedLibrary.table(of: libraries) == "liba.so.1   1.2.3  /a\nlibbb.so.1  4      /b")
        #expect(LoadedLibrary.table(of: []) == "")
    }
}
