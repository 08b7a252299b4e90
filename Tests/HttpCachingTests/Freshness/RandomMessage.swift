import Glibc
import HttpCaching
import HttpWare
import StoreRig

/// A response's lines at random, and what they mean: each text comes with its meaning, so that nothing has to read it but the
/// code that is tested.
struct RandomMessage {
    private(set) var lines: [String] = []
    private(set) var status = 200
    private(set) var meaning = NaiveFreshness()
    /// When it was asked for and received, in nanoseconds since 1970.
    private var random: SplitMix
    private var control: [String] = []

    init(seed: UInt64) {
        random = SplitMix(state: seed)
        makeTimes()
        makeStatus()
        makeCacheControl()
        makeDates()
        makeAge()
        mix()
    }

    /// Puts the lines in any order, except the lines of `Cache-Control`: of several values the first counts.
    private mutating func mix() {
        var others = lines.shuffled(using: &random)[...]
        var rest = control[...]
        lines = []
        while !others.isEmpty || !rest.isEmpty {
            let takesControl = others.isEmpty || !rest.isEmpty && random.isOneIn(3)
            lines.append(takesControl ? rest.removeFirst() : others.removeFirst())
        }
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    // MARK: Times

    private mutating func makeTimes() {
        let received = Int128(noon.seconds) * 1_000_000_000 + Int128(number(0...999_999_999))
        meaning.responseTime = received
        meaning.requestTime = received - Int128(random.pick([0, 0, 1, number(0...90_000_000_000)]))
        meaning.isShared = !random.isOneIn(3)
    }

    private mutating func makeStatus() {
        status = random.pick([200, 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501, 201, 302, 403, 500, 599])
        meaning.isHeuristicallyCacheable =
            [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(status)
    }

    /// A time at which the message may be looked at, the boundary of its freshness among them.
    mutating func makeNow() -> Int128 {
        let received = meaning.responseTime
        let left = Int128(meaning.freshnessLifetime ?? 0) * 1_000_000_000 - meaning.currentAge(at: received)
        let now =
            switch number(0...5) {
            case 0: received
            case 1: received + Int128(number(0...100)) * 1_000_000_000
            case 2: received + Int128(number(0...5_000_000_000)) * 1_000_000_000
            default: received + left + Int128(random.pick([-1_000_000_000, -1, 0, 1, 1_000_000_000]))
            }
        return max(received, now)
    }

    // MARK: Directives

    private mutating func makeCacheControl() {
        guard !random.isOneIn(4) else { return }
        var members = (0..<number(0...4)).map { _ in makeMember() }
        members.shuffle(using: &random)
        meaning.sharedMaxAge = members.flatMap(\.sharedMaxAge)
        meaning.maxAge = members.flatMap(\.maxAge)
        meaning.isPublic = members.contains(where: \.isPublic)
        // Over one line or several, with what a list may hold between its members.
        var rest = members.map(\.text)[...]
        while !rest.isEmpty {
            let part = rest.prefix(number(1...rest.count))
            rest = rest.dropFirst(part.count)
            let comma = random.pick([",", ", ", " ,\t", ",,", " , , "])
            control.append("\(cased("Cache-Control")): \(part.joined(separator: comma))")
        }
    }

    private struct Member {
        var text: String
        var sharedMaxAge: [Int128?] = []
        var maxAge: [Int128?] = []
        var isPublic = false
    }

    private mutating func makeMember() -> Member {
        switch number(0...9) {
        case 0...3:
            let (text, seconds) = makeSeconds()
            return Member(text: cased("max-age") + text, maxAge: [seconds])
        case 4...5:
            let (text, seconds) = makeSeconds()
            return Member(text: cased("s-maxage") + text, sharedMaxAge: [seconds])
        case 6: return Member(text: cased("public"), isPublic: true)
        default:
            // Nothing here says how long.
            return Member(
                text: random.pick([
                    "no-transform", "x=\"max-age=60\"", "x=\"a, s-maxage=60, b\"", "xmax-age=60", "max-agex=60",
                    "immutable", "x='", "x=\"\\\", max-age=1\"", "stale-if-error=60", "max_age=60", "s-max-age=60",
                ]))
        }
    }

    /// The text behind a directive's name, and its number; `nil` without one.
    private mutating func makeSeconds() -> (String, Int128?) {
        switch number(0...7) {
        case 0:
            return (
                random.pick([
                    "", "=", "=-1", "=1.5", "=x", "= 60", "=6 0", "='60'", "=0x10", "=\"6\"0", "=+60", "=60s",
                    "=\"\"", "=\"-5\"", "=1e3",
                ]), nil
            )
        case 1:
            let digits = random.pick([
                "2147483647", "2147483648", "2147483649", "4294967296", "9223372036854775807", "9223372036854775808",
                "18446744073709551616", "99999999999999999999999999999999999",
            ])
            return ("=\(digits)", Int128(digits))
        case 2:
            let seconds = number(0...10_000)
            return ("=\"\(seconds)\"", Int128(seconds))
        case 3:
            let seconds = number(0...10_000)
            return ("=000\(seconds)", Int128(seconds))
        default:
            let seconds = random.pick([0, 1, number(0...100), number(0...1_000_000)])
            return ("=\(seconds)", Int128(seconds))
        }
    }

    private mutating func cased(_ text: String) -> String {
        let mixed = String(text.map { random.isOneIn(2) ? Character($0.uppercased()) : $0 })
        return random.pick([text, text, text.uppercased(), text.lowercased(), mixed])
    }

    // MARK: Dates and age

    private mutating func makeDates() {
        if !random.isOneIn(4) {
            let (text, time) = makeDate(near: 200)
            lines.append("Date: \(text)")
            meaning.date = time
        }
        for _ in 0..<random.pick([0, 0, 1, 1, 1, 2]) {
            let (text, time) = makeDate(near: 20_000)
            // Their order is that of the lines, which are shuffled: two are alike, then.
            if meaning.expires.isEmpty {
                meaning.expires = [time]
                lines.append("Expires: \(text)")
            } else if let line = lines.first(where: { $0.hasPrefix("Expires") }) {
                lines.append(line)
            }
        }
        if !random.isOneIn(3) {
            let (text, time) = makeDate(near: 10_000_000)
            lines.append("Last-Modified: \(text)")
            meaning.lastModified = time
        }
    }

    /// A date as a field writes it, and the second that it is; `nil` for none.
    private mutating func makeDate(near: Int) -> (String, Int128?) {
        if random.isOneIn(8) {
            let text = random.pick([
                "0", "-1", "", "now", "Sat, 21 Nov 2026 12:10:00 PST", "Sat, 21 Nov 2026 12:10:00",
                "Sat, 31 Feb 2026 12:10:00 GMT", "Sat, 21 Nov 2026 24:00:00 GMT", "Sat, 21 Nov 26 12:10:00 GMT",
                "Sat, 21 Nov 2026 12:10:00 +0000", "2026-11-21T12:00:00Z", "Sat,21 Nov 2026 12:10:00 GMT",
            ])
            return (text, nil)
        }
        switch number(0...9) {
        case 0:
            // Years 1601 to 9999.
            let seconds = number(-11_644_473_600...253_402_300_799)
            return (RandomMessage.text(seconds, "%a, %d %b %Y %H:%M:%S GMT"), Int128(seconds))
        case 1:
            // Two digits name a year that is at most fifty years ahead.
            let seconds = Int(noon.seconds) + number(-1_500_000_000...1_500_000_000)
            return (RandomMessage.text(seconds, "%A, %d-%b-%y %H:%M:%S GMT"), Int128(seconds))
        case 2:
            let seconds = Int(noon.seconds) + number(-near...near)
            return (RandomMessage.text(seconds, "%a %b %e %H:%M:%S %Y"), Int128(seconds))
        default:
            let seconds = Int(noon.seconds) + number(-near...near)
            return (RandomMessage.text(seconds, "%a, %d %b %Y %H:%M:%S GMT"), Int128(seconds))
        }
    }

    /// Written by the C library.
    private static func text(_ seconds: Int, _ format: String) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var buffer = [CChar](repeating: 0, count: 64)
        let count = strftime(&buffer, buffer.count, format, &parts)
        return String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private mutating func makeAge() {
        guard random.isOneIn(2) else { return }
        switch number(0...4) {
        case 0: lines.append("Age: " + random.pick(["-1", "1.5", "x", "", "5s", "x, 7", "\"5\""]))
        case 1:
            let digits = random.pick(["2147483648", "3000000000", "99999999999999999999999"])
            lines.append("Age: \(digits)")
            meaning.age = Int128(digits)
        default:
            // Of several members the first counts. RFC 9111 §5.1.
            let seconds = random.pick([0, number(0...100), number(0...100_000)])
            lines.append("Age: \(seconds)" + random.pick(["", "", ", 7", ",x"]))
            meaning.age = Int128(seconds)
        }
    }
}
