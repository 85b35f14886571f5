/// The first line of a head, whichever way it goes.
enum StartLine: Equatable {
    case request(method: String, target: String, version: HTTPVersion)
    case response(version: HTTPVersion, status: Int, reason: String)

    /// Gives `nil` for a line that is none.
    typealias Reader = @Sendable (String) -> StartLine?

    /// request-line = method SP request-target SP HTTP-version (RFC 9112 §3), with exactly these two spaces.
    static let readRequest: Reader = { line in
        let parts = Self.split(line, maximum: 3)
        guard parts.count == 3, parts[0].isToken, !parts[1].isEmpty,
            parts[1].utf8.allSatisfy(\.isVisibleASCII),
            let version = HTTPVersion(parts[2])
        else { return nil }
        return .request(method: String(parts[0]), target: String(parts[1]), version: version)
    }

    /// status-line = HTTP-version SP status-code SP [ reason-phrase ] (RFC 9112 §4). Many servers leave out the last
    /// space together with the phrase, which does no harm.
    static let readResponse: Reader = { line in
        let parts = Self.split(line, maximum: 2)
        guard parts.count >= 2, let version = HTTPVersion(parts[0]), parts[1].utf8.count == 3,
            let status = Int(parts[1]), (100...999).contains(status)
        else { return nil }
        return .response(version: version, status: status, reason: parts.count == 3 ? String(parts[2]) : "")
    }

    private static func split(_ line: String, maximum: Int) -> [Substring] {
        line.utf8.split(separator: 0x20, maxSplits: maximum, omittingEmptySubsequences: false).map { Substring($0) }
    }
}
