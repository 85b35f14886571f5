/// The paths that a route answers, segment by segment.
package struct PathPattern: Sendable, Hashable {
    package enum Segment: Sendable, Hashable {
        /// Matches itself, after percent-decoding, case and all.
        case literal(String)
        /// Any one segment that is not empty: `{room}`.
        case parameter(String)
        /// All that is left, even nothing: `{rest...}`. Only as the last one.
        case rest(String)
    }

    package let segments: [Segment]

    package init(_ segments: [Segment]) {
        self.segments = segments
    }

    /// Names of its parameters, from left to right.
    package var parameters: [String] {
        self.segments.compactMap { segment in
            switch segment {
            case .literal: nil
            case .parameter(let name), .rest(let name): name
            }
        }
    }
}

extension PathPattern {
    /// The target that fits this path and needs no percent-decoding; `nil` where others fit too in what they leave open,
    /// or text stands in it that a target would have to encode.
    package var onlyTarget: String? {
        let leadsOut = self.segments.contains { segment in
            if case .literal(let name) = segment { PathTraversal.isPossible(with: name) } else { false }
        }
        guard self.parameters.isEmpty, !leadsOut else { return nil }
        let target = self.description
        let isPlain = target.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"): false
            default: (0x21...0x7E).contains(byte)
            }
        }
        let slashes = target.utf8.count { $0 == UInt8(ascii: "/") }
        return isPlain && slashes == max(1, self.segments.count) ? target : nil
    }
}

extension PathPattern: CustomStringConvertible {
    package var description: String {
        guard !self.segments.isEmpty else { return "/" }
        return self.segments.reduce(into: "") { text, segment in
            switch segment {
            case .literal(let name): text += "/\(name)"
            case .parameter(let name): text += "/{\(name)}"
            case .rest(let name): text += "/{\(name)...}"
            }
        }
    }
}
