import Capturing
import HttpWare

extension CaptureSettings {
    /// Reads `admin.capture`.
    init(options: inout OptionsReader) {
        self.init()
        options.read(
            "memory", into: &memory, in: .mebibytes(1) ... .gibibytes(64),
            doc: "maximum memory for all captures together; the oldest go first")
        options.read("disk", doc: "keeps captures in files too, which survive a restart") {
            var path: FilePath?
            var maxSize = ByteCount.gibibytes(1)
            $0.read("path", into: &path, doc: "the folder, which no other gateway may use; created if needed")
            $0.require("path")
            $0.read(
                "maxSize", into: &maxSize, in: .mebibytes(1) ... .gibibytes(65_536),
                doc: "maximum size of all files together; the oldest captures go first")
            if let path { disk = CaptureDisk(path: path, maxSize: maxSize) }
        }
        options.read(
            "content", into: &content, in: .bytes(0) ... .gibibytes(1),
            doc: "maximum size of each content that is kept; beyond it, the size and the digest are")
        options.read(
            "filter", into: &filter,
            doc: "captures only what matches, such as ~d example.com; without it, everything is captured")
        options.read(
            "redact", into: &redacted,
            doc:
                "fields whose values are masked before anything is kept, with parameters and members named like secrets; [] masks nothing"
        )
    }
}
