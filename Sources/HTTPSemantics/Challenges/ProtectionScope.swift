/// For which paths an answer may be sent before it is asked for.
package struct ProtectionScope: Equatable, Sendable {
    /// Prefixes of paths; empty for all of the origin.
    private let prefixes: [String]

    /// All at the depth of `path` and below: RFC 7617 §2.2 for Basic.
    /// - Parameter path: of the request that was challenged, without its query.
    package init(basicChallengedAt path: String) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        self.prefixes = [slash.map { String(path[...$0]) } ?? "/"]
    }

    /// The prefixes that the server named; none mean all of its origin: RFC 7616 §3.3 for Digest.
    /// - Parameter paths: of the challenge's `domain` once its references are resolved, those of this origin.
    package init(digestDomain paths: [String]) {
        self.prefixes = paths
    }

    /// - Parameter path: of another request to the same origin.
    package func covers(_ path: String) -> Bool {
        let path = path.isEmpty ? "/" : path
        return self.prefixes.isEmpty || self.prefixes.contains { path.utf8.starts(with: $0.utf8) }
    }
}
