import WebSocketProtocol

/// An event of an engine, with the bytes instead of their range.
enum Observation: Equatable, CustomStringConvertible {
    case data(MessageKind, [UInt8], startsMessage: Bool, endsFrame: Bool, endsMessage: Bool)
    case ping([UInt8])
    case pong([UInt8])
    case close(UInt16?, reason: [UInt8])
    case violation(PeerViolation.Rule)

    /// A message in one frame.
    static func text(_ text: String) -> Observation {
        .data(.text, Array(text.utf8), startsMessage: true, endsFrame: true, endsMessage: true)
    }

    /// A message in one frame.
    static func binary(_ bytes: [UInt8]) -> Observation {
        .data(.binary, bytes, startsMessage: true, endsFrame: true, endsMessage: true)
    }

    /// One frame of a message in several.
    static func frame(
        _ kind: MessageKind, _ bytes: [UInt8], starts: Bool = false, ends: Bool = false
    ) -> Observation {
        .data(kind, bytes, startsMessage: starts, endsFrame: true, endsMessage: ends)
    }

    /// The beginning of an incomplete frame.
    static func piece(_ kind: MessageKind, _ bytes: [UInt8], starts: Bool = false) -> Observation {
        .data(kind, bytes, startsMessage: starts, endsFrame: false, endsMessage: false)
    }

    var description: String {
        switch self {
        case .data(let kind, let bytes, let starts, let endsFrame, let endsMessage):
            let marks = (starts ? "^" : "") + (endsFrame ? "|" : "") + (endsMessage ? "$" : "")
            return "\(kind)[\(bytes.count)]\(bytes.prefix(24))\(marks)"
        case .ping(let payload): return "ping\(payload)"
        case .pong(let payload): return "pong\(payload)"
        case .close(let code, let reason): return "close(\(code.map(String.init) ?? "-"), \(reason))"
        case .violation(let rule): return "violation(\(rule))"
        }
    }
}

extension [Observation] {
    /// Adds an event; pieces of one frame are joined, so that their split does not matter.
    mutating func see(_ next: Observation) {
        guard case .data(let kind, let bytes, false, let endsFrame, let endsMessage) = next,
            case .data(kind, let before, let starts, false, _)? = self.last
        else { return self.append(next) }
        self[self.count - 1] = .data(
            kind, before + bytes, startsMessage: starts, endsFrame: endsFrame, endsMessage: endsMessage)
    }
}

extension [Observation] {
    /// The same with the frames of a message joined, because a compressor chooses where it splits its output.
    var messages: [Observation] {
        var result: [Observation] = []
        for next in self {
            if case .data(let kind, let bytes, false, let endsFrame, let endsMessage) = next,
                let open = result.lastIndex(where: \.isUnfinished),
                case .data(_, let before, let starts, _, _) = result[open]
            {
                result[open] = .data(
                    kind, before + bytes, startsMessage: starts, endsFrame: endsFrame, endsMessage: endsMessage)
            } else {
                result.append(next)
            }
        }
        return result
    }
}

extension Observation {
    var isData: Bool {
        if case .data = self { true } else { false }
    }

    /// Whether everything after it is ignored.
    var isEnd: Bool {
        switch self {
        case .close, .violation: true
        case .data, .ping, .pong: false
        }
    }

    fileprivate var isUnfinished: Bool {
        if case .data(_, _, _, _, endsMessage: false) = self { true } else { false }
    }
}
