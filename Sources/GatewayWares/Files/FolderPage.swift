import HttpWare

/// A page that lists a folder. Names from the file system are escaped.
enum FolderPage {
    /// The most entries that are listed.
    private static let mostEntries = 10_000

    /// Reads the folder and makes the page; `nil` if it cannot be read. Waits for the disk, so it must not run on a
    /// loop.
    static func make(_ folder: OpenedFolder, _ place: FilePlace, showsHidden: Bool) -> [UInt8]? {
        let listed = folder.entries(atMost: mostEntries) { showsHidden || $0.first != 0x2e || isWellKnown($0) }
        guard let (entries, isCut) = listed else { return nil }
        let sorted = entries.sorted { one, other in
            one.isFolder == other.isFolder ? one.name.lexicographicallyPrecedes(other.name) : one.isFolder
        }
        var page = Array("<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>/".utf8)
        let title = place.path.isEmpty ? [] : place.path + [0x2f]
        escape(title, into: &page)
        page += "</title>\n<style>body{font-family:sans-serif;margin:2em}td{padding:.1em 1em .1em 0}".utf8
        page += "td:nth-child(2){text-align:right}</style></head>\n<body><h1>/".utf8
        escape(title, into: &page)
        page += "</h1>\n<table>\n".utf8
        if !place.path.isEmpty { page += "<tr><td><a href=\"../\">../</a></td></tr>\n".utf8 }
        for entry in sorted {
            // The prefix `./` keeps a name with a colon from being read as a scheme.
            page += "<tr><td><a href=\"./".utf8
            encode(entry.name, into: &page)
            if entry.isFolder { page.append(0x2f) }
            page += "\">".utf8
            escape(entry.name, into: &page)
            if entry.isFolder { page.append(0x2f) }
            page += "</a></td><td>".utf8
            if let size = entry.size { page += String(size).utf8 }
            page += "</td><td>".utf8
            if let modified = entry.modified { page += modified.rfc3339.replacing("T", with: " ").prefix(16).utf8 }
            page += "</td></tr>\n".utf8
        }
        page += "</table>\n".utf8
        if isCut { page += "<p>More than \(mostEntries) entries; the others are not listed.</p>\n".utf8 }
        page += "</body></html>\n".utf8
        return page
    }

    /// The fields of the page, which loads nothing but its own style.
    static let fields: HttpFields = [
        "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy":
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ]

    private static func isWellKnown(_ name: [UInt8]) -> Bool { name.elementsEqual(".well-known".utf8) }

    private static func escape(_ text: [UInt8], into page: inout [UInt8]) {
        // Bytes that are not UTF-8 become U+FFFD.
        HtmlText.append(String(decoding: text, as: UTF8.self), to: &page)
    }

    private static func encode(_ name: [UInt8], into page: inout [UInt8]) {
        page += PercentText.encoded(name)
    }
}
