import HttpWare

/// The names of the operators, with the argument that each one reads.
enum FilterOperator {
    /// The argument after a name.
    enum Argument: Sendable {
        case nothing(FilterTest)
        case pattern(Pattern.Style, limits: Pattern.Limits = .loop, @Sendable (FilterPattern) -> FilterTest)
        case status
        case id
        case duration
        case size
    }

    /// Decoded content may be longer than the limit of a loop, and filters run away from the loops.
    private static let contentLimits = Pattern.Limits(subject: DecodedContent.longest, time: .milliseconds(100))

    /// The arguments by name, without the tilde.
    static let all: [String: Argument] = {
        func text(_ make: @escaping @Sendable (FilterPattern) -> FilterTest) -> Argument {
            .pattern([.ignoresCase], make)
        }
        func lines(_ make: @escaping @Sendable (FilterPattern) -> FilterTest) -> Argument {
            .pattern([.ignoresCase, .byLine], make)
        }
        func content(_ side: FilterTest.Side) -> Argument {
            .pattern([.ignoresCase, .dotMatchesAll], limits: contentLimits) { .content(side, $0) }
        }
        return [
            "u": text { .url($0) },
            "d": text { .domain($0) },
            "m": text { .method($0) },
            "c": .status,
            "h": lines { .fields(.either, $0) },
            "hq": lines { .fields(.request, $0) },
            "hs": lines { .fields(.response, $0) },
            "b": content(.either),
            "bq": content(.request),
            "bs": content(.response),
            "t": text { .contentType(.either, $0) },
            "tq": text { .contentType(.request, $0) },
            "ts": text { .contentType(.response, $0) },
            "q": .nothing(.hasNoResponse),
            "s": .nothing(.hasResponse),
            "e": .nothing(.hasFault),
            "err": .nothing(.isError),
            "a": .nothing(.isAsset),
            "src": text { .source($0) },
            "dst": text { .destination($0) },
            "comment": lines { .comment($0) },
            "marked": .nothing(.isMarked),
            "marker": text { .marker($0) },
            "meta": lines { .meta($0) },
            "http": .nothing(.always(true)),
            "websocket": .nothing(.kind(.websocket)),
            "replay": .nothing(.isReplay(.either)),
            "replayq": .nothing(.isReplay(.request)),
            "replays": .nothing(.isReplay(.response)),
            "all": .nothing(.always(true)),
            "tcp": .nothing(.always(false)),
            "udp": .nothing(.always(false)),
            "dns": .nothing(.always(false)),
            // Operators that mitmproxy lacks.
            "route": text { .route($0) },
            "service": text { .service($0) },
            "ware": text { .ware($0) },
            "did": .pattern([.ignoresCase, .whole]) { .decision($0) },
            "dur": .duration,
            "size": .size,
            "id": .id,
            "ws": .nothing(.kind(.websocket)),
            "sse": .nothing(.kind(.sse)),
            "grpc": .nothing(.kind(.grpc)),
            "gql": text { .operation($0) },
        ]
    }()
}
